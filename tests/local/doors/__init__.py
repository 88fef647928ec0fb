"""Twelve objects through both doors: a cluster with the operator, and `kubectl triton check` on this machine."""
