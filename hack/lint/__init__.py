"""What `make lint` needs besides the linters themselves."""
