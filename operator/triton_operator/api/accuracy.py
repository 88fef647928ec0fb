"""What the served model must be worth."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.schema import ApiType, Decimal, list_map, rules


class MetricThreshold(ApiType):
    """A bound on a metric that the metrics entrypoint computes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.minimum) || has(self.maximum) || has(self.maximumDegradation)",
                "a threshold needs minimum, maximum or maximumDegradation",
            )
        )
    )
    metric: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """Its name, as calc returns it."""
    minimum: Decimal | None = None
    """The served value is at least this."""
    maximum: Decimal | None = None
    """The served value is at most this."""
    maximum_degradation: Decimal | None = None
    """The served value differs from the framework's own by at most this."""


class AccuracyGate(ApiType):
    """What the served model must be worth."""

    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Samples of the dataloader that are used. Default 256."""
    thresholds: Annotated[
        list[MetricThreshold],
        Field(max_length=16, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """All must hold. Default: none; Verified then says NumericalOnly."""
