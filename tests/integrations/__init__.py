"""Other projects' controllers on a cluster with this tree's operator."""
