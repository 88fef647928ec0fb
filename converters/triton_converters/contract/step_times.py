"""How long the models of an ensemble take. Standard library only."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StepTimes:
    """Mean times of a request in one model of an ensemble, by the server's own statistics, in microseconds."""

    model: str
    queue: tuple[int, ...]
    """Time in the model's queue; one figure for each row of the sweep, in its order."""
    compute: tuple[int, ...]
    """Time to prepare inputs, to run and to prepare outputs; likewise."""
