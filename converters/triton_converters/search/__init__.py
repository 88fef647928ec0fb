"""The search for a better configuration of one revision: its space, its path, its measurements and their journal."""
