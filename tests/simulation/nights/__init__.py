"""Nights: models that are really trained meet the comparison with earlier revisions, through the operator's real plan.

``python3 -m tests.simulation.nights`` takes them, and prints what was refused, noticed and lost.
"""
