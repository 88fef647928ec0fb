"""What is read: a cluster, saved files, logs, and a folder's files."""
