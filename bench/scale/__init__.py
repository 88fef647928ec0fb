"""The operator's own cost with many objects, on an API server without nodes: `python3 -m bench.scale`."""
