"""Real models of other projects, taken out of PyPI packages when they are needed, and never committed."""
