"""What is written to the repository claim, and read from it."""
