"""The user's Python files: how they are loaded, called and read."""
