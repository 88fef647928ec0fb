"""The checks that a candidate must pass before it can serve."""
