"""The ways to serve the models, and how they compare. Pure."""
