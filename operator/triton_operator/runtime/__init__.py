"""The process: kopf's handlers, the work queue, the copy of the cluster's objects, and the passes over them."""
