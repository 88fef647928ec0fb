"""INT8 next to fp32: models with their data, the stages they go through, and what came of it."""
