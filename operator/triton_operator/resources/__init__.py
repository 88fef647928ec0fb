"""One builder a kind: pure functions from a Context to a plain object."""
