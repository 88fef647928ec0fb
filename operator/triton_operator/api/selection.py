"""How the candidate is chosen."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_converters.contract import request
from triton_operator.api.schema import ApiType, Decimal, ResultKey, list_map, number, rules

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
    """A metric to improve: higher throughput, lower latency or lower memory use."""

    metric: ObjectiveMetric
    """Metric to improve: Throughput, P50LatencyMicroseconds, P90LatencyMicroseconds, P95LatencyMicroseconds,
    P99LatencyMicroseconds, AverageLatencyMicroseconds or UsedMemoryBytes."""
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
    """Metric to bound: Throughput (inferences, that is samples, per second), P50LatencyMicroseconds,
    P90LatencyMicroseconds, P95LatencyMicroseconds, P99LatencyMicroseconds, AverageLatencyMicroseconds or
    UsedMemoryBytes."""
    minimum: Decimal | None = None
    """Minimum value, in the metric's unit, as a decimal string. Default: no bound."""
    maximum: Decimal | None = None
    """Maximum value, in the metric's unit, as a decimal string. Default: no bound."""

    def asked(self) -> request.Constraint:
        """Return the constraint as the ranking and a search's request take it."""
        return request.Constraint(self.metric, number(self.minimum), number(self.maximum))


class Search(ApiType):
    """A search for better configurations of the two best candidates: batching, instances, queue delay, CUDA graphs."""

    mode: Literal["None", "Quick", "Exhaustive"]
    """`None` turns the search off. `Quick` starts from the spec's configuration and changes one setting at a time, as
    long as the measurements improve. `Exhaustive` measures every combination of settings."""
    measurements: Annotated[int, Field(ge=8, le=480)] = 48
    """Maximum number of measurements, for both candidates together. Default: 48."""
    duration_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """Maximum time spent measuring, for both candidates together, in seconds. When it is spent, the best configuration
    found so far is used. Default: 3600."""


class Selection(ApiType):
    """How the candidate to serve is chosen from those that passed every gate."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.approvedRevision) || (has(self.approval) && self.approval == 'Manual')",
                "approvedRevision needs manual approval: set approval to Manual, or remove approvedRevision",
            )
        )
    )
    scenario: Literal["Online", "Offline"] = "Online"
    """The sweep whose measurements are ranked: `Online` or `Offline`. Default: Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Metrics to improve. Default: Throughput."""
    constraints: Annotated[
        list[Constraint],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Bounds, all of which a measurement must meet. Each needs `minimum` or `maximum`. Default: none."""
    search: Search = Field(default_factory=lambda: Search(mode="None"))
    """Search for better configurations (batching, instances, queue delay, CUDA graphs) of the two best candidates. Not
    available for an ensemble. Default: mode None."""
    approval: Literal["Automatic", "Manual"] = "Automatic"
    """Whether a rollout needs your approval. With `Automatic`, the operator rolls out the best candidate. With
    `Manual`, it rolls out only the revision that `approvedRevision` names, and the active revision keeps serving until
    then. Default: Automatic."""
    approved_revision: ResultKey | None = None
    """Key of the revision that may be rolled out, copied from `key` of the candidate in `status.candidates`. Only
    allowed with `approval: Manual`. Default: none; no new revision is rolled out."""
    fallback: Literal["None", "Closest"] = "None"
    """What happens if no candidate meets every constraint. `None` rolls out nothing. `Closest` rolls out the candidate
    that misses the constraints by the smallest margin. Default: None."""
    minimum_improvement_percent: Annotated[int, Field(ge=0, le=1000)] = 0
    """Minimum improvement in the objectives, in percent, for which another candidate of the same source replaces the
    active one. Both must have been measured in the same environment. If 0, the best candidate always replaces the
    active one. Default: 0."""
