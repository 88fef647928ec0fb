"""The controller: watches TritonDeployments and brings the cluster to what they ask for."""
