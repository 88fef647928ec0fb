"""Writing to and reading from the repository claim."""
