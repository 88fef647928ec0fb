"""The search on real servers: response surfaces that tests replay, and Model Analyzer on the same model."""
