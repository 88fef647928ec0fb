"""Benchmarks of the operator itself; their raw results are in bench/results."""
