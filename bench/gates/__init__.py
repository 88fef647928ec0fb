"""How often the gates pass a wrong model, and how often they fail a right one; see docs/gates.md."""
