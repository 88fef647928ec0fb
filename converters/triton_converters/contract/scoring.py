"""Which row or point is the best, and by how much a row misses a constraint. Pure; standard library only.

The score of a row is the sum over objectives of weight * ln(throughput), or -weight * ln(latency or memory), divided by
the sum of weights. Differences of scores are weighted relative gains, as Model Analyzer's objectives are; unlike its
comparison of pairs, this one is an order (transitive), so that neither the candidates' order nor a baseline decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

from triton_converters.contract.measurement_requests import Constraint, Objective
from triton_converters.contract.results import Row, SearchPoint

THROUGHPUT = "Throughput"
"""The only metric of which more is better."""
MEMORY = "UsedMemoryBytes"
P99 = "P99LatencyMicroseconds"
METRICS = {
    THROUGHPUT: "throughput",
    "P50LatencyMicroseconds": "p50",
    "P90LatencyMicroseconds": "p90",
    "P95LatencyMicroseconds": "p95",
    P99: "p99",
    "AverageLatencyMicroseconds": "average",
    MEMORY: "memory_bytes",
}
"""The fields of Row, by the metrics' names in requests; a spec has others."""


@dataclass(frozen=True)
class Violation:
    """A constraint that a row does not meet."""

    constraint: Constraint
    value: float
    distance: float
    """How far the value is beyond the bound, relative to the bound."""


def value(row: Row, metric: str) -> float:
    """Return a row's figure in inferences per second, microseconds or bytes; infinite if memory was not measured."""
    if metric == MEMORY and not row.memory_bytes:
        return inf
    return float(getattr(row, METRICS[metric]))


def score(row: Row, objectives: Sequence[Objective]) -> float:
    """Return a row's score: more is better. Without objectives only throughput counts."""
    wanted = objectives or (Objective(THROUGHPUT, 1),)
    total = sum(objective.weight for objective in wanted)
    return sum(objective.weight * _gain(row, objective.metric) for objective in wanted) / total


def violation(row: Row, constraints: Sequence[Constraint]) -> Violation | None:
    """Return the constraint that a row misses by most; None if it meets all."""
    missed = [found for constraint in constraints if (found := _miss(row, constraint))]
    return max(missed, key=lambda each: each.distance, default=None)


def distance(row: Row, constraints: Sequence[Constraint]) -> float:
    """Return how far a row is beyond the bound it misses by most, relative to that bound; 0.0 if it meets all."""
    missed = violation(row, constraints)
    return missed.distance if missed else 0.0


def order(row: Row, objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> tuple[float, float]:
    """Return a key that sorts rows from best to worst: those that meet every constraint by score, then by distance."""
    return distance(row, constraints), -score(row, objectives)


def best_point(
    points: Sequence[SearchPoint],
    repeats: Sequence[SearchPoint],
    objectives: Sequence[Objective],
    constraints: Sequence[Constraint],
) -> SearchPoint | None:
    """Return the best of the repeated points, or else of all points; None if nothing was measured.

    The best of many points was also the luckiest, so points that were measured again, for longer, are judged by the
    repeat. A configuration that was refused then does not count.
    """
    refused = {point.tuning for point in repeats if point.row is None}

    def best(measured: Sequence[SearchPoint]) -> SearchPoint | None:
        found = [
            (order(point.row, objectives, constraints), point)
            for point in measured
            if point.row is not None and point.tuning not in refused
        ]
        return min(found, key=lambda each: each[0], default=(None, None))[1]

    return best(repeats) or best(points)


def _gain(row: Row, metric: str) -> float:
    figure = value(row, metric)
    if figure <= 0:
        return -inf if metric == THROUGHPUT else 0.0
    return log(figure) if metric == THROUGHPUT else -log(figure)


def _miss(row: Row, constraint: Constraint) -> Violation | None:
    figure = value(row, constraint.metric)
    minimum = constraint.minimum
    maximum = constraint.maximum
    if minimum is not None and figure < minimum:
        return Violation(constraint, figure, _relative(minimum - figure, minimum))
    if maximum is not None and figure > maximum:
        return Violation(constraint, figure, _relative(figure - maximum, maximum))
    return None


def _relative(excess: float, bound: float) -> float:
    return excess / abs(bound) if bound else excess
