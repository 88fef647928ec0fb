"""Benchmarks of the operator itself; raw results go to bench/results, of which git keeps what pages are made from."""
