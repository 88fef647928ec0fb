"""The exhaustive search: every point of the space, distant ones first, so that even a small budget gives a survey."""

from triton_converters.contract.results import Tuning
from triton_converters.search.path import SearchPath, Setup
from triton_converters.search.space import Space


def sweep(space: Space) -> SearchPath:
    """Yield every point once: the base, then configurations from a coarse grid to finer ones, each with all loads."""
    ranks = [_coarse_first(len(axis.values)) for axis in space.axes]
    fineness: dict[Tuning, tuple[int, int]] = {space.base: (-1, 0)}
    for place in space.places():
        figures = [rank[at] for rank, at in zip(ranks, place, strict=True)]
        found = (max(figures), sum(figures))
        tuning = space.tuning(place)
        fineness[tuning] = min(found, fineness.get(tuning, found))
    for tuning in sorted(fineness, key=lambda each: fineness[each]):
        for load in space.servable(tuning):
            yield Setup(tuning, load)


def _coarse_first(count: int) -> list[int]:
    """Return the rank of each of ``count`` positions: both ends 0, the middle 1, the quarters 2, and so on."""
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
