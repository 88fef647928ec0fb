"""Copies a folder of the user's machine to a PersistentVolumeClaim, through a pod that lives only for that."""
