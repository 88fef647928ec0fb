"""`kubectl triton`: reads TritonDeployments and their results, and writes nothing to the cluster."""
