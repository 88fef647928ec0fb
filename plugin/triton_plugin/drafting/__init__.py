"""What is written for a cluster: objects, drafted from folders and other projects' objects, checked and pushed."""
