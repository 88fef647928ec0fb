"""What only developers of the project run."""
