"""The main line of each Job."""
