"""`kubectl triton` reads TritonDeployments and their results; it writes nothing to the cluster."""
