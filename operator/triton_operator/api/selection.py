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
    """What is better: more throughput, less latency, less memory."""

    metric: ObjectiveMetric
    """A column of the measured rows."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Relative to the other objectives. Default 1."""

    def asked(self) -> request.Objective:
        """As the arithmetic and a search's Job take it."""
        return request.Objective(self.metric, self.weight)


class Constraint(ApiType):
    """What a row must keep to be taken."""

    model_config = ConfigDict(
        json_schema_extra=rules(("has(self.minimum) || has(self.maximum)", "a constraint needs minimum or maximum"))
    )
    metric: ObjectiveMetric
    """A column of the measured rows."""
    minimum: Decimal | None = None
    """At least this."""
    maximum: Decimal | None = None
    """At most this."""

    def asked(self) -> request.Constraint:
        """As the arithmetic and a search's Job take it."""
        return request.Constraint(self.metric, _number(self.minimum), _number(self.maximum))


class Search(ApiType):
    """Other configurations of the best candidates: maximum batch size, instances, batching delay, CUDA graphs."""

    mode: Literal["None", "Quick", "Exhaustive"]
    """`None`: what the spec says is served. `Quick`: from the spec's configuration, step by step to better ones.
    `Exhaustive`: every combination."""
    measurements: Annotated[int, Field(ge=8, le=480)] = 48
    """Most points that are measured, of both searched candidates together. Default 48: a tenth of the 440 that Model
    Analyzer's brute force takes of one model, and two Jobs' messages."""
    duration_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """Most time that is spent measuring, of both together; the best point so far is then taken. Default 3600, as long
    as a profile Job may take."""


class Selection(ApiType):
    """How the candidate is chosen."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.approvedRevision) || (has(self.approval) && self.approval == 'Manual')",
                "approvedRevision needs approval: Manual",
            )
        )
    )
    scenario: Literal["Online", "Offline"] = "Online"
    """The sweep whose rows are judged. Default Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Default: Throughput."""
    constraints: Annotated[
        list[Constraint],
        Field(max_length=7, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """All must hold for a row. Default: none."""
    search: Search = Field(default_factory=lambda: Search(mode="None"))
    """Whether other configurations of the two best candidates are measured too. Default: mode None. Not of an
    ensemble."""
    approval: Literal["Automatic", "Manual"] = "Automatic"
    """`Manual`: nothing is rolled out before approvedRevision names it; what serves goes on serving. Default
    Automatic."""
    approved_revision: ResultKey | None = None
    """With approval Manual: key of the candidate that may serve, as in status.candidates."""
    fallback: Literal["None", "Closest"] = "None"
    """Where no candidate meets every constraint. `None`: nothing is rolled out. `Closest`: the candidate that is the
    least beyond them. Default None."""
    minimum_improvement_percent: Annotated[int, Field(ge=0, le=1000)] = 0
    """What serves is kept unless another candidate of the same source is better by at least this, by the objectives,
    and was measured in the same environment. Default 0: the best serves."""


def _number(bound: str | None) -> float | None:
    return None if bound is None else float(bound)
