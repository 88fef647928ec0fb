"""Steps that Triton's Python backend runs: the backend's module for the reference stage, and what is served."""
