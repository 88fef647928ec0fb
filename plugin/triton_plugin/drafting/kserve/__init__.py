"""A first TritonDeployment for a KServe InferenceService."""
