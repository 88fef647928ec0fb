"""Puts this working tree's operator into a cluster: images, then the chart. Shared by the demo, the tests and bench."""
