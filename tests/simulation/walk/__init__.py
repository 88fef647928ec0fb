"""A random walk: people, faults and time change one object in any order, and some things always hold.

``python3 -m tests.simulation.walk --steps 10000`` walks, and prints the shortest steps that it finds to each failure.
"""
