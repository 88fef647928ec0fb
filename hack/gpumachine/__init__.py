"""Objects on the GPU of a bare machine: what it lacks is packed here, and checked with there."""
