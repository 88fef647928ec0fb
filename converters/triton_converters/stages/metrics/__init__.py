"""Stage ``metrics``: the user's metrics of the framework's outputs, and of the outputs that profiles kept."""
