"""The search for a better configuration of one revision: what may be tried, what to try next, and the stage."""

PART_POINTS = 24
"""Most new points of one Job: with rows of full width, more would not fit into its termination message."""
