"""How long the models of an ensemble take. Standard library only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StepTimes:
    """Mean times of a request in one model of an ensemble, by the server's own statistics, in microseconds."""

    model: str
    queue: tuple[int, ...]
    """Time in the model's queue; one figure for each row of the sweep, in its order."""
    compute: tuple[int, ...]
    """Time to prepare inputs, to run and to prepare outputs; likewise."""


def by_model(rows: Sequence[Mapping[str, tuple[int, int]]]) -> tuple[StepTimes, ...]:
    """Return the times of each model, sorted by the models' names; empty if the rows do not tell of the same models.

    ``rows``: each model's time in its queue and computing, one for each row of a sweep.
    """
    models = sorted(rows[0]) if rows else []
    if any(sorted(each) != models for each in rows):
        return ()
    return tuple(
        StepTimes(model, tuple(each[model][0] for each in rows), tuple(each[model][1] for each in rows))
        for model in models
    )
