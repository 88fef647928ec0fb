"""Rank the candidates, and say how they compare; ``contract.scoring`` has the arithmetic. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isinf

from triton_converters.contract import scoring
from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import P99, THROUGHPUT, Violation
from triton_operator.api.selection import Objective

LARGEST_NOISE_PERCENT = 10.0
"""The largest spread, in percent, that counts as noise: perf_analyzer's default for how far its windows may differ.

A larger spread must not make a worse measurement count as equal.
"""
TRADE_OFF = (THROUGHPUT, P99)
"""The metrics that decide what is Pareto-optimal, unless the spec has several objectives."""


@dataclass(frozen=True)
class Contender:
    """A candidate that is ranked."""

    name: str
    rows: Sequence[Row]
    """The measurements of the judged scenario."""
    complexity: tuple[int, ...] = ()
    """Decides between equally good candidates: the smaller one wins."""


@dataclass(frozen=True)
class Binding:
    """The bound that a row is closest to breaking, or breaks by most."""

    metric: str
    """Name of the bounded metric, as requests of Jobs have it."""
    margin: float
    """How far the row is within the bound, relative to the bound; negative: beyond it."""


@dataclass(frozen=True)
class RankedCandidate:
    """A candidate's best row: the best one that meets every constraint, or else the closest to meeting them."""

    name: str
    row: Row
    score: float
    violation: Violation | None
    binding: Binding | None
    """The bound that the row is closest to breaking; None: there is no constraint."""
    complexity: tuple[int, ...] = ()
    rank: int = 0
    pareto: bool = False
    """Whether the candidate is Pareto-optimal: no other row beats one of its rows in all metrics at once."""

    @property
    def load(self) -> str:
        """The load the row was measured under."""
        return load_words(self.row)

    @property
    def distance(self) -> float:
        """How far the row is beyond the bound that it misses by most, relative to that bound; 0.0: it meets all."""
        return self.violation.distance if self.violation else 0.0


def rank(
    contenders: Sequence[Contender], objectives: Sequence[Objective], constraints: Sequence[Constraint]
) -> list[RankedCandidate]:
    """Rank the contenders from best to worst; a contender without rows is left out.

    Those that meet every constraint come first, by score; the others follow, by distance. One exception: the first is
    the simplest of those that are as good as the best within the noise. Equal contenders keep the given order.
    """
    with_rows = [each for each in contenders if each.rows]
    choices = [
        replace(best_row(each.rows, objectives, constraints, each.name), complexity=each.complexity)
        for each in with_rows
    ]
    ordered = sorted(choices, key=lambda choice: (choice.distance, -choice.score, choice.complexity))
    if ordered and ordered[0].violation is None:
        within_constraints = [each for each in ordered if each.violation is None]
        # A contender that is no worse than one of those is as good too, however quiet its own measurement was.
        least_score = min(each.score for each in within_constraints if is_within_noise(ordered[0], each))
        simplest = min(
            (each for each in within_constraints if each.score >= least_score), key=lambda choice: choice.complexity
        )
        ordered = [simplest, *(each for each in ordered if each is not simplest)]
    unbeaten = _pareto_names(with_rows, _trade_off(objectives))
    return [
        replace(choice, rank=position, pareto=choice.name in unbeaten)
        for position, choice in enumerate(ordered, start=1)
    ]


def best_row(
    rows: Sequence[Row], objectives: Sequence[Objective], constraints: Sequence[Constraint], name: str = ""
) -> RankedCandidate:
    """Return the best of the rows; there must be at least one."""
    requested = tuple(objective.as_request() for objective in objectives)
    row = min(rows, key=lambda each: scoring.order(each, requested, constraints))
    bindings = (each for bound in constraints for each in _bindings(row, bound))
    return RankedCandidate(
        name=name,
        row=row,
        score=scoring.score(row, requested),
        violation=scoring.violation(row, constraints),
        binding=min(bindings, key=lambda binding: binding.margin, default=None),
    )


def load_words(row: Row) -> str:
    """Return the load of a row, in words."""
    load = f"{row.request_rate} requests/s" if row.request_rate else f"concurrency {row.concurrency}"
    return f"batch {row.batch_size}, {load}"


def improvement(one: RankedCandidate, other: RankedCandidate) -> float:
    """Return how much better `one` is than `other`, in percent of the other's figures, weighted like the objectives."""
    if one.score == other.score:
        return 0.0
    difference = one.score - other.score
    # Rounded, or what is half as fast again would be a billionth less than 50 % better.
    return round((exp(difference) - 1) * 100, 9) if difference < 700 else inf


def percent_words(value: float) -> str:
    """Return an improvement in words. It is infinite over a figure that was not measured."""
    return "far" if isinf(value) else f"{value:.1f} %"


def noise(one: RankedCandidate, other: RankedCandidate) -> float:
    """Return the percent by which two may differ and still count as equal: the larger spread of their windows."""
    return min(max(one.row.spread, other.row.spread), LARGEST_NOISE_PERCENT)


def is_within_noise(best: RankedCandidate, other: RankedCandidate) -> bool:
    """Whether the other is worse than the best by no more than noise."""
    return -improvement(other, best) <= noise(best, other)


def comparison(first: RankedCandidate, other: RankedCandidate) -> str:
    """Return how `other` compares with `first`, which is ranked first, in words. Both meet every constraint."""
    worse_percent = -improvement(other, first)
    if worse_percent < 0:
        better = f"{-worse_percent:.1f} % better than {first.name}"
        return f"{better}, which is simpler and as good within the noise ({other.load})"
    if is_within_noise(first, other):
        return f"as good as {first.name} within the noise of {noise(first, other):.1f} % ({other.load})"
    return f"{worse_percent:.1f} % worse than {first.name} at its best measurement ({other.load})"


def pareto_front(rows: Iterable[Row], metrics: Sequence[str]) -> list[Row]:
    """Return the Pareto-optimal rows: no other row is at least as good in every metric and better in one."""
    unbeaten: list[tuple[tuple[float, ...], Row]] = []
    # A row that comes later in this order is worse at the first difference, so it beats no earlier row.
    for merits, row in sorted(((_merits(row, metrics), row) for row in rows), key=lambda pair: pair[0], reverse=True):
        if not any(_beats(other, merits) for other, _ in unbeaten):
            unbeaten.append((merits, row))
    return [row for _, row in unbeaten]


def _pareto_names(contenders: Sequence[Contender], metrics: Sequence[str]) -> set[str]:
    owners: dict[Row, set[str]] = {}
    for contender in contenders:
        for row in contender.rows:
            owners.setdefault(row, set()).add(contender.name)
    return {name for row in pareto_front(owners, metrics) for name in owners[row]}


def _trade_off(objectives: Sequence[Objective]) -> Sequence[str]:
    metrics = [objective.as_request().metric for objective in objectives]
    return metrics if len(metrics) > 1 else TRADE_OFF


def _merits(row: Row, metrics: Sequence[str]) -> tuple[float, ...]:
    """Return the row's figures, with signs such that more is better."""
    return tuple(
        scoring.value(row, metric) if metric == THROUGHPUT else -scoring.value(row, metric) for metric in metrics
    )


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(figure >= other_figure for figure, other_figure in zip(one, other, strict=True))


def _bindings(row: Row, constraint: Constraint) -> Iterator[Binding]:
    figure = scoring.value(row, constraint.metric)
    if constraint.minimum is not None:
        yield Binding(constraint.metric, _relative(figure - constraint.minimum, constraint.minimum))
    if constraint.maximum is not None:
        yield Binding(constraint.metric, _relative(constraint.maximum - figure, constraint.maximum))


def _relative(room: float, bound: float) -> float:
    return room / abs(bound) if bound else room
