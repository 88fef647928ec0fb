"""Converters from the framework's model to a file that Triton serves; one module for each format."""
