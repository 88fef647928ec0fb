"""From the framework's model to a file that Triton serves; one module a format."""
