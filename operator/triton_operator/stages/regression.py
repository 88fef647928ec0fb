"""Whether a new source is slower than the last one that served: both through their preview Services. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from triton_converters.result import MeasureResult, Row, SourceResult
from triton_operator.context import Context
from triton_operator.environments import differences
from triton_operator.selection import best_row, improvement


@dataclass(frozen=True)
class Compared:
    """With the last source that served."""

    words: str
    regressed: bool
    """Worse by more than performance.regression.maximumPercent."""


def compared(context: Context, source: SourceResult, measured: MeasureResult) -> Compared | None:
    """The new source beside the last; None where that is not asked for, or no other source served.

    Figures are compared where environment and loads are the same, by the objectives as they are now.
    """
    asked = context.spec.performance.regression
    last = _last(context, source)
    if asked is None or last is None:
        return None
    digest, before = last
    name = f"source sha256:{digest[:12]}"
    obstacle = next(differences(before.environment, measured.environment), "")
    if not obstacle and _loads(before.online) != _loads(measured.online):
        obstacle = "loads differ"
    if obstacle:
        return Compared(f"not compared with {name}, which served last: {obstacle}", False)
    selection = context.spec.selection
    constraints = selection.constraints if selection.scenario == "Online" else ()
    old, new = (best_row(each.online, selection.objectives, constraints) for each in (before, measured))
    change = improvement(new, old)
    words = f"{abs(change):.1f} % {'worse' if change < 0 else 'better'} than {name}, which served last"
    return Compared(words, -change > asked.maximum_percent)


def _last(context: Context, source: SourceResult) -> tuple[str, MeasureResult] | None:
    """Digest and measurement of the last state that served with another source, from what the history records."""
    for state in context.observed.history.served:
        results = [context.observed.records[name].outcome.result for name in state if name in context.observed.records]
        sources = [each for each in results if isinstance(each, SourceResult)]
        measured = [each for each in results if isinstance(each, MeasureResult)]
        if sources and measured and sources[0].digest != source.digest:
            return sources[0].digest, measured[0]
    return None


def _loads(rows: Sequence[Row]) -> set[tuple[int, int]]:
    return {(row.batch_size, row.concurrency) for row in rows}
