"""How the candidate is chosen."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_converters import request
from triton_operator.api.schema import ApiType, Decimal, list_map, rules

ObjectiveMetric = Literal[
    "Throughput",
    "P50LatencyMicroseconds",
    "P90LatencyMicroseconds",
    "P95LatencyMicroseconds",
    "P99LatencyMicroseconds",
    "AverageLatencyMicroseconds",
]


class Objective(ApiType):
    """What is better: more throughput, less latency."""

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


class Selection(ApiType):
    """How the candidate is chosen."""

    scenario: Literal["Online", "Offline"] = "Online"
    """The sweep whose rows are judged. Default Online."""
    objectives: Annotated[
        list[Objective],
        Field(max_length=6, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Default: Throughput."""
    constraints: Annotated[
        list[Constraint],
        Field(max_length=6, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """All must hold for a row. Default: none."""


def _number(bound: str | None) -> float | None:
    return None if bound is None else float(bound)
