"""Applies manifests/examples to a cluster, waits for them and judges them. The demo, the tests and bench use it."""
