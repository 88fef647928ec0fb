"""A TritonDeployment checked without a cluster: what the API server would refuse, and what the operator would."""
