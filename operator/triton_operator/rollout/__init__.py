"""How a revision becomes the one that serves: room, canary, soak, scale, route. Pure."""
