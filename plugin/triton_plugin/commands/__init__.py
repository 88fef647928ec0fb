"""The commands, one module each, whose ``run`` takes what was typed, and returns the exit status."""
