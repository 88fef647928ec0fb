"""Runs the suites of `make test`, and says at the end what became of each."""
