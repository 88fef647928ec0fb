"""A real single-node Kubernetes for machines that have none: built, started and removed by name."""
