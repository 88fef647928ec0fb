"""Benchmarks of the operator itself; the raw results are in bench/results."""
