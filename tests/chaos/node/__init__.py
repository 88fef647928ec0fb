"""Faults on a real node: its pods, its claims, its kubelet, and the operator in it."""
