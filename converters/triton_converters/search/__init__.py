"""The search for a better configuration of one revision: its space, its path, its measurements and their journal."""

PART_POINTS = 24
"""Most new points of one Job: with rows of full width, more would not fit into its termination message."""
