"""Tests on a development cluster of several nodes."""
