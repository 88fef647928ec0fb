"""The builders of objects: pure functions from a Context to a plain dict."""
