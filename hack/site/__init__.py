"""The documentation as a site: the pages of this tree, as Zensical takes them, and a check of what it built."""
