"""Runs manifests/examples on a cluster: applied, waited for, judged. Shared by the demo, the tests and bench."""
