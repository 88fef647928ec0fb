"""How the candidate is chosen."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_converters.contract import request
from triton_operator.api.schema import ApiType, Decimal, ResultKey, list_map, rules

ObjectiveMetric = Literal[
    "Throughput",
    "P50LatencyMicroseconds",
    "P90LatencyMicroseconds",
    "P95LatencyMicroseconds",
    "P99LatencyMicroseconds",
    "AverageLatencyMicroseconds",
    "UsedMemoryBytes",
]


class Objective(ApiType):
    """A metric to improve: more throughput, less latency or less memory."""

    metric: ObjectiveMetric
    """Metric of the measurements."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Weight of the objective relative to the other objectives. Default: 1."""

    def asked(self) -> request.Objective:
        """Return the objective as the ranking and a search's request take it."""
        return request.Objective(self.metric, self.weight)


class Constraint(ApiType):
    """A bound on a metric. It needs at least one of `minimum` and `maximum`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("has(self.minimum) || has(self.maximum)", "a constraint needs a bound: set minimum or maximum")
        )
    )
    metric: ObjectiveMetric
    """Metric of the measurements: throughput in inferences per second, latencies in microseconds, or memory in
    bytes."""
    minimum: Decimal | None = None
    """Smallest value allowed, as a decimal string. Default: no bound."""
    maximum: Decimal | None = None
    """Largest value allowed, as a decimal string. Default: no bound."""

    def asked(self) -> request.Constraint:
        """Return the constraint as the ranking and a search's request take it."""
        return request.Constraint(self.metric, _number(self.minimum), _number(self.maximum))


class Search(ApiType):
    """A search of other configurations for the two best candidates: batching, instances, queue delay, CUDA graphs."""

    mode: Literal["None", "Quick", "Exhaustive"]
    """`None` searches nothing. `Quick` climbs from the spec's configuration, step by step. `Exhaustive` measures every
    combination."""
    measurements: Annotated[int, Field(ge=8, le=480)] = 48
    """Largest number of measurements for both candidates together. Default: 48, about a tenth of the 440 that Model
    Analyzer's brute force takes for one model."""
    duration_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """Longest time that is spent measuring for both candidates together, in seconds. Then the best point so far is
    taken. Default: 3600, as for a profile Job."""


class Selection(ApiType):
    """How the candidate is chosen from those that passed every gate."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.approvedRevision) || (has(self.approval) && self.approval == 'Manual')",
                "approvedRevision needs manual approval: set approval to Manual, or remove approvedRevision",
            )
        )
    )
    scenario: Literal["Online", "Offline"] = "Online"
    """The sweep whose measurements are ranked. Default: Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Metrics to improve. Default: Throughput."""
    constraints: Annotated[
        list[Constraint],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Bounds that a measurement must meet, all of them. Each needs `minimum` or `maximum`. Default: none."""
    search: Search = Field(default_factory=lambda: Search(mode="None"))
    """Search of other configurations for the two best candidates: batching, instances, queue delay and CUDA graphs. An
    ensemble cannot be searched. Default: mode None."""
    approval: Literal["Automatic", "Manual"] = "Automatic"
    """With `Manual` the operator rolls out only the revision that `approvedRevision` names, and the active revision
    keeps serving meanwhile. Default: Automatic."""
    approved_revision: ResultKey | None = None
    """Key of the candidate that may serve, as in `status.candidates[].key`. It needs `approval: Manual`."""
    fallback: Literal["None", "Closest"] = "None"
    """What happens if no candidate meets every constraint. `None` rolls out nothing. `Closest` rolls out the candidate
    that is the least beyond the constraints. Default: None."""
    minimum_improvement_percent: Annotated[int, Field(ge=0, le=1000)] = 0
    """How much better another candidate of the same source must be to replace the active revision, in percent, by the
    objectives and measured in the same environment. With 0 the best candidate always replaces it. Default: 0."""


def _number(bound: str | None) -> float | None:
    return None if bound is None else float(bound)
