"""The whole chain on a real cluster, used as a user would: kubectl apply, then look."""
