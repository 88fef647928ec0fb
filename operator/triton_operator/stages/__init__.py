"""The stages, one file each: pure functions from what was observed to what to do next."""
