"""Which candidate is best, and why each other is not; by the arithmetic of ``triton_converters.scoring``. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from triton_converters import scoring
from triton_converters.result import Row
from triton_converters.scoring import Violation
from triton_operator.api.selection import Constraint, Objective


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
    choices = [_best(name, rows, objectives, constraints) for name, rows in candidates if rows]
    ordered = sorted(choices, key=lambda choice: (_distance(choice), -choice.score))
    return [
        Choice(choice.name, choice.row, choice.score, choice.violation, position)
        for position, choice in enumerate(ordered, start=1)
    ]


def best_row(rows: Sequence[Row], objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> Choice:
    """The best of at least one row."""
    return _best("", rows, objectives, constraints)


def gain(best: Choice, other: Choice) -> str:
    """How much better the best is, in words."""
    return f"{(1 - exp(other.score - best.score)) * 100:.1f} % worse than {best.name} at its best row ({other.load})"


def _best(name: str, rows: Sequence[Row], objectives: Sequence[Objective], constraints: Sequence[Constraint]) -> Choice:
    wanted = tuple(objective.asked() for objective in objectives)
    bounds = tuple(constraint.asked() for constraint in constraints)
    row = min(rows, key=lambda each: scoring.order(each, wanted, bounds))
    return Choice(name, row, scoring.score(row, wanted), scoring.violation(row, bounds))


def _distance(choice: Choice) -> float:
    return choice.violation.distance if choice.violation else 0.0
