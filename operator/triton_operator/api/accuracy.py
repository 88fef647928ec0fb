"""The accuracy gate of a TritonDeployment."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from triton_operator.api.schema import ApiType, Decimal, list_map, rules


class MetricThreshold(ApiType):
    """A bound on a metric. It needs at least one of `minimum`, `maximum` and `maximumDegradation`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.minimum) || has(self.maximum) || has(self.maximumDegradation)",
                "a threshold needs a bound: set minimum, maximum or maximumDegradation",
            )
        )
    )
    metric: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """Name of the metric, as the MetricsCalculator returns it."""
    minimum: Decimal | None = None
    """Smallest value that the metric of the served outputs may have, as a decimal string. Default: no bound."""
    maximum: Decimal | None = None
    """Largest value that the metric of the served outputs may have, as a decimal string. Default: no bound."""
    maximum_degradation: Decimal | None = None
    """Largest difference, in either direction, between the metric of the served outputs and that of the framework's
    outputs, as a decimal string. Default: no bound."""


class AccuracyGate(ApiType):
    """Accuracy thresholds that a candidate must meet before it can serve."""

    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Largest number of samples that are taken from the dataloader, for the reference and for every gate. Default:
    256."""
    thresholds: Annotated[
        list[MetricThreshold],
        Field(max_length=16, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Thresholds that must all hold. Each needs `minimum`, `maximum` or `maximumDegradation`, and all need
    `spec.metrics`. Without thresholds only the numerical agreement is checked, and the condition Verified has the
    reason NumericalOnly. Default: none."""
