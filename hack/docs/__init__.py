"""The generators of documentation."""
