"""How much one part of a search may answer. Its publisher and the controller ask, as user code can write answers.

Standard library only.
"""

from triton_converters.contract.results import SearchEnd, SearchResult

PART_POINTS = 24
"""Most new points of one Job: with rows of full width, more would not fit into its termination message."""
REPEATS = 2
"""Number of points that are measured once more at the end; the budget reserves them."""
LEAST_MEASUREMENTS = 1 + REPEATS
"""What any search may measure: one point, and the repeats."""
LONGEST_OVERRUN_SECONDS = 6 * 86400
"""What is measured when the time is spent is finished, and then two points are repeated: three measurements, each
within a Job, which has a day for its search and a day besides."""


def excess(part: SearchResult, measured: int, measurements: int) -> str:
    """Return in words what a part has too much or too little; empty: it may be.

    ``measured``: points of earlier parts. ``measurements``: most points and repeats of all parts together.
    """
    points, repeats = len(part.points), len(part.repeats)
    if points > PART_POINTS or repeats > REPEATS:
        return f"{points} points and {repeats} repeats, where {PART_POINTS} and {REPEATS} are the most"
    if part.ended is SearchEnd.FAILED:
        return "an end that no search has"
    if part.ended is SearchEnd.GOES_ON and (repeats or not points):
        return f"{points} points and {repeats} repeats, although it is not the last part"
    if measured + points + repeats > max(measurements, LEAST_MEASUREMENTS):
        return f"{measured + points + repeats} measurements in all, where {measurements} were asked for"
    return ""
