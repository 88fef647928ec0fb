"""One file a stage, in the order of the flow. Each is a pure function from what was observed to what to do next."""
