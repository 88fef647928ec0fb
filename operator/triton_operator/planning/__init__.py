"""Computes everything a pass wants, and the status, from a snapshot. Pure."""
