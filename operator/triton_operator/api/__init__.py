"""The API: spec and status of a TritonDeployment, in the order its fields are read."""
