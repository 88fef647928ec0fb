"""The demonstration: from nothing to a measured server on a real cluster, on real input."""
