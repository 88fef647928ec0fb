"""Twelve public Triton repositories, each as one object (docs/triton-repositories.md)."""
