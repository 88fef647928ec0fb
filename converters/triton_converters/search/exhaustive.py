"""The exhaustive search: every point of the space, the far apart ones first, so that a budget's end leaves a survey."""

from triton_converters.search.path import Path, Point
from triton_converters.search.space import Space


def sweep(space: Space) -> Path:
    """Every point once: those of the base, then from a coarse grid to finer ones."""
    for load in space.servable(space.base):
        yield Point(space.base, load)
    ranks = [_coarse_first(len(axis.values)) for axis in space.axes]
    by_load = dict(zip(space.loads, _coarse_first(len(space.loads)), strict=True))
    fineness: dict[Point, tuple[int, int]] = {}
    for place in space.places():
        tuning = space.tuning(place)
        own = [rank[at] for rank, at in zip(ranks, place, strict=True)]
        for load in space.servable(tuning) if tuning != space.base else ():
            figures = (*own, by_load[load])
            found = (max(figures), sum(figures))
            point = Point(tuning, load)
            fineness[point] = min(found, fineness.get(point, found))
    for point in sorted(fineness, key=lambda each: fineness[each]):
        yield point


def _coarse_first(count: int) -> list[int]:
    """Rank of each of ``count`` positions: both ends 0, the middle 1, the quarters 2, and so on."""
    ranks = [0] * count
    gaps, level = [(0, count - 1)], 1
    while gaps:
        for low, high in gaps:
            if high - low > 1:
                ranks[(low + high) // 2] = level
        gaps = [
            gap for low, high in gaps if high - low > 1 for gap in ((low, (low + high) // 2), ((low + high) // 2, high))
        ]
        level += 1
    return ranks
