"""Measure a running server with perf_analyzer."""
