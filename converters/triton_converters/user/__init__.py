"""Loading, calling and reading the user's Python files."""
