"""Checks a TritonDeployment without a cluster for what the API server and the operator would refuse."""
