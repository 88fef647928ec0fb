"""Judge what a part of a search answers, and the points that it adds, against its request. Pure."""

from collections.abc import Iterable
from pathlib import Path

from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.results import Row, SearchResult, Tuning
from triton_converters.contract.search_parts import LONGEST_OVERRUN_SECONDS, PART_POINTS, excess
from triton_converters.incoming.files import unfit
from triton_converters.incoming.plausible import is_possible
from triton_converters.search.space import LoadLevel, Space


def check(request: SearchRequest, part: SearchResult, what: Path) -> None:
    """Raise StageError(Crashed) if the part, which is read from ``what``, is not one of this search."""
    space = Space.of(request)
    if beyond := excess(part, request.part * PART_POINTS, request.measurements):
        raise unfit(what, f"it has {beyond}")
    if part.search != request.search or part.size != space.size:
        raise unfit(what, "it is of another search")
    if not 0 <= part.seconds <= request.seconds + LONGEST_OVERRUN_SECONDS:
        raise unfit(what, "its measurements cannot have taken that long")
    check_points(space, ((each.tuning, each.row) for each in (*part.points, *part.repeats)), what)


def check_points(space: Space, points: Iterable[tuple[Tuning, Row | None]], what: Path) -> None:
    """Raise StageError(Crashed) for a configuration, a load or a figure that is not in the space."""
    known = set(space.tunings)
    for tuning, row in points:
        if tuning not in known:
            raise unfit(what, "a configuration in it was not asked for")
        if row is None:
            continue
        load = LoadLevel(row.batch_size, row.concurrency)
        if not is_possible(row) or row.request_rate or load not in space.servable(tuning):
            raise unfit(what, "a figure in it is impossible, or its load was not asked for")
