"""The API: the spec and the status of a TritonDeployment. A module for each part of the spec."""
