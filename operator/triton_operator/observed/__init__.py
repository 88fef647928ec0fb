"""What was observed of a TritonDeployment's children. Pure."""
