"""Python packages that the user's code needs and the image lacks: what is asked for, and what pip makes of it."""
