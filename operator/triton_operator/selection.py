"""Which candidate is best, and why each other is not. Pure.

Score of a row: the sum over objectives of weight * ln(throughput) or -weight * ln(latency), divided by the sum of
weights. Differences of scores are weighted relative gains, as Model Analyzer's objectives are; unlike its comparison of
pairs, this one is an order (transitive), so that neither the candidates' order nor a baseline decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log

from triton_converters.result import Row
from triton_operator.api.selection import Constraint, Objective

_FIELDS = {
    "Throughput": "throughput",
    "P50LatencyMicroseconds": "p50",
    "P90LatencyMicroseconds": "p90",
    "P95LatencyMicroseconds": "p95",
    "P99LatencyMicroseconds": "p99",
    "AverageLatencyMicroseconds": "average",
}


@dataclass(frozen=True)
class Violation:
    """A constraint that a row does not meet."""

    constraint: Constraint
    value: float
    distance: float
    """How far the value is beyond the bound, relative to the bound."""

    def __str__(self) -> str:
        """In words: metric, value and bound."""
        minimum, maximum = self.constraint.minimum, self.constraint.maximum
        below = minimum is not None and self.value < float(minimum)
        bound = f"minimum {minimum}" if below else f"maximum {maximum}"
        return f"{self.constraint.metric} {self.value:g}, {bound}"


@dataclass(frozen=True)
class Choice:
    """A candidate's best row: the best that meets every constraint, else the one closest to meeting them."""

    name: str
    row: Row
    score: float
    violation: Violation | None
    rank: int = 0

    @property
    def load(self) -> str:
        """The load the row was measured under."""
        return f"batch {self.row.batch_size}, concurrency {self.row.concurrency}"


def rank(
    candidates: Sequence[tuple[str, Sequence[Row]]], objectives: Sequence[Objective], constraints: Sequence[Constraint]
) -> list[Choice]:
    """Candidates (name, rows of the judged scenario) from best to worst.

    First those that meet every constraint, by score; then the others, by distance. Equal ones keep the given order.
    A candidate without rows is left out.
    """
    wanted = list(objectives) or [Objective(metric="Throughput")]
    choices = [_best(name, rows, wanted, constraints) for name, rows in candidates if rows]
    ordered = sorted(choices, key=lambda choice: (_distance(choice), -choice.score))
    return [
        Choice(choice.name, choice.row, choice.score, choice.violation, position)
        for position, choice in enumerate(ordered, start=1)
    ]


def worst_violation(row: Row, constraints: Sequence[Constraint]) -> Violation | None:
    """The constraint that a row misses by most; None where it meets all."""
    violations = [found for constraint in constraints if (found := _violation(row, constraint))]
    return max(violations, key=lambda violation: violation.distance, default=None)


def best_row(rows: Sequence[Row], objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> Choice:
    """The best of at least one row."""
    return _best("", rows, list(objectives) or [Objective(metric="Throughput")], constraints)


def gain(best: Choice, other: Choice) -> str:
    """How much better the best is, in words."""
    return f"{(1 - exp(other.score - best.score)) * 100:.1f} % worse than {best.name} at its best row ({other.load})"


def value(row: Row, metric: str) -> float:
    """A row's figure by the objective's name: inferences per second or microseconds."""
    return float(getattr(row, _FIELDS[metric]))


def _best(name: str, rows: Sequence[Row], objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> Choice:
    choices = [Choice(name, row, _score(row, objectives), worst_violation(row, constraints)) for row in rows]
    return min(choices, key=lambda choice: (_distance(choice), -choice.score))


def _distance(choice: Choice) -> float:
    return choice.violation.distance if choice.violation else 0.0


def _score(row: Row, objectives: Sequence[Objective]) -> float:
    total = sum(objective.weight for objective in objectives)
    return sum(objective.weight * _gain(row, objective.metric) for objective in objectives) / total


def _gain(row: Row, metric: str) -> float:
    figure = value(row, metric)
    if figure <= 0:
        return -inf if metric == "Throughput" else 0.0
    return log(figure) if metric == "Throughput" else -log(figure)


def _violation(row: Row, constraint: Constraint) -> Violation | None:
    figure = value(row, constraint.metric)
    if constraint.minimum is not None and figure < float(constraint.minimum):
        return Violation(constraint, figure, _relative(float(constraint.minimum) - figure, float(constraint.minimum)))
    if constraint.maximum is not None and figure > float(constraint.maximum):
        return Violation(constraint, figure, _relative(figure - float(constraint.maximum), float(constraint.maximum)))
    return None


def _relative(excess: float, bound: float) -> float:
    return excess / abs(bound) if bound else excess
