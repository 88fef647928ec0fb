"""How the candidate is chosen."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from triton_converters.contract import measurement_requests as requests
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import MEMORY, P99, THROUGHPUT, Violation
from triton_operator.api.duration import Duration, Span, Within, amount
from triton_operator.api.metrics import NAMES, REQUESTED, figure, limit
from triton_operator.api.quantity import Quantity, whole
from triton_operator.api.schema import ApiType, PositiveOrZero, ResultKey, list_map, rules

ObjectiveMetric = Literal[
    "throughput", "p50Latency", "p90Latency", "p95Latency", "p99Latency", "averageLatency", "memory"
]


class Objective(ApiType):
    """A metric to improve: higher throughput, lower latency or lower memory use."""

    metric: ObjectiveMetric
    """Metric to improve."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Weight of the objective relative to the other objectives. Default: 1."""

    def as_request(self) -> requests.Objective:
        """Return the objective as the ranking and a search's request take it."""
        return requests.Objective(REQUESTED[self.metric], self.weight)


class Constraints(ApiType):
    """Bounds on the figures of a measurement: the highest latencies and memory use, and the lowest throughput."""

    p50_latency: Duration | None = None
    """Highest median latency, such as 5ms. Default: no bound."""
    p90_latency: Duration | None = None
    """Highest 90th percentile of the latency, such as 10ms. Default: no bound."""
    p95_latency: Duration | None = None
    """Highest 95th percentile of the latency, such as 15ms. Default: no bound."""
    p99_latency: Duration | None = None
    """Highest 99th percentile of the latency, such as 20ms. Default: no bound."""
    average_latency: Duration | None = None
    """Highest mean latency, such as 800us. Default: no bound."""
    throughput: PositiveOrZero | None = None
    """Lowest throughput, in inferences (samples) per second. Default: no bound."""
    memory: Quantity | None = None
    """Highest memory use, such as 8Gi, of the GPU, or of the node if there is none. Default: no bound."""

    @cached_property
    def bounds(self) -> Mapping[str, Any]:
        """The bounds as the spec has them, by the metrics' names in requests."""
        written = self.model_dump(by_alias=True, exclude_none=True)
        return {REQUESTED[name]: bound for name, bound in written.items()}

    @cached_property
    def as_requests(self) -> tuple[requests.Constraint, ...]:
        """The bounds as the ranking and a search's request take them: in microseconds, samples/s and bytes."""
        return tuple(_constraint(metric, bound) for metric, bound in self.bounds.items())

    def words(self) -> list[str]:
        """Return each bound in words, such as "p99Latency at most 20ms"."""
        return [self.bound(metric) for metric in self.bounds]

    def bound(self, metric: str) -> str:
        """Return the bound on a metric in words, with the metric's name in a spec; there must be one."""
        return f"{NAMES[metric]} {limit(metric, self.bounds[metric])}"

    def figure(self, metric: str, value: float) -> str:
        """Return a row's figure in a spec's words, in the unit of its bound, such as "p99Latency 4ms"."""
        return f"{NAMES[metric]} {figure(metric, value, self.bounds.get(metric))}"

    def row_words(self, row: Row) -> str:
        """Return the figures of a row that every message tells."""
        return f"{row.throughput:g} inferences/s, {self.figure(P99, row.p99)}"

    def broken(self, violation: Violation) -> str:
        """Return a figure and the bound that it breaks, such as "p99Latency 21ms, at most 20ms"."""
        metric = violation.constraint.metric
        return f"{self.figure(metric, violation.value)}, {limit(metric, self.bounds[metric])}"


def _constraint(metric: str, bound: Any) -> requests.Constraint:
    if metric == THROUGHPUT:
        return requests.Constraint(metric, bound, None)
    return requests.Constraint(metric, None, float(whole(bound) if metric == MEMORY else amount(bound, "us")))


class Search(ApiType):
    """A search for better configurations of the two best candidates: batching, instances, queue delay, CUDA graphs."""

    mode: Literal["None", "Quick", "Exhaustive"]
    """`Quick` changes one setting at a time, as long as measurements improve; `Exhaustive` measures every
    combination."""
    measurements: Annotated[int, Field(ge=8, le=480)] = 48
    """Maximum number of measurements, for both candidates together. Default: 48."""
    duration: Annotated[Span, Within("1m", "24h")] = "1h"
    """Maximum time spent measuring, for both candidates together, from 1m to 24h. Default: 1h."""


class Selection(ApiType):
    """How the candidate to serve is chosen from those that passed every gate."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.scenario) || self.scenario != 'RequestRate' || !has(self.search)"
                " || self.search.mode == 'None'",
                "a search measures no request rates: set search.mode to None, or scenario to Online",
            ),
        )
    )
    scenario: Literal["Online", "Offline", "RequestRate"] = "Online"
    """The sweep whose measurements are ranked; `RequestRate` is `performance.online.requestRate`. Default: Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """What to improve. Default: throughput."""
    constraints: Constraints = Field(default_factory=Constraints)
    """Bounds, all of which a measurement must meet. Default: none."""
    search: Search = Field(default_factory=lambda: Search(mode="None"))
    """Search for better configurations (batching, instances, queue delay, CUDA graphs) of the two best candidates, not
    of an ensemble. Default: mode None."""
    approval: Literal["Automatic", "Manual"] = "Automatic"
    """With `Manual`, only the revision that `approvedRevision` names is rolled out. Default: Automatic."""
    approved_revision: ResultKey | None = None
    """Key of the revision that may be rolled out, from `status.candidates`, although a metric is worse than before.
    With `approval: Automatic` it has no other effect. Default: none."""
    fallback: Literal["None", "Closest"] = "None"
    """What is rolled out if no candidate meets every constraint: nothing, or the one that misses them by the least.
    Default: None."""
    min_improvement_percent: Annotated[int, Field(ge=0, le=1000)] = 20
    """Minimum improvement, in percent, for which another candidate replaces the active one; 0: the best always does.
    Default: 20."""
