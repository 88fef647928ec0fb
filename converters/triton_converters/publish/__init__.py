"""A revision as a signed image: its layers, the way into a registry, the keys, and what is signed."""
