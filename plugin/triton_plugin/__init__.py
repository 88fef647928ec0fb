"""`kubectl triton` puts files on claims, and reads TritonDeployments and their results."""
