"""The main program of each stage's Job."""
