"""From a snapshot to the whole intent and the status. Pure."""
