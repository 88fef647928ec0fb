"""Twelve public Triton repositories, each as one object (docs/ensembles.md)."""
