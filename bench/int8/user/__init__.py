"""What a user would write, as a source on the claim."""
