"""Measurements of a running server with perf_analyzer."""
