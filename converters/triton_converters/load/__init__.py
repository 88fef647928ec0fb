"""Loaders, one for each source format: from the user's file to a model that runs."""
