"""A load that rises and falls on an object that KEDA scales."""
