"""The engine without Kubernetes: the operator's own passes over objects in a folder, whose pods are processes here."""
