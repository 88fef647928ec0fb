"""The accuracy gate of a TritonDeployment."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from triton_converters.contract.accuracy import Threshold
from triton_operator.api.schema import ApiType, Number, PositiveOrZero, list_map, rules


class MetricThreshold(ApiType):
    """A bound on a metric. It needs at least one of `min`, `max` and `maxDegradation`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.min) || has(self.max) || has(self.maxDegradation)",
                "a threshold needs a bound: set min, max or maxDegradation",
            ),
            (
                # For cel-python, 1 is no double.
                "!has(self.min) || !has(self.max) || double(self.min) <= double(self.max)",
                "min must not be greater than max: raise max, or lower min",
            ),
        )
    )
    metric: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """Name of the metric, as the MetricsCalculator returns it."""
    min: Number | None = None
    """Minimum value of the metric of the served outputs. Default: no bound."""
    max: Number | None = None
    """Maximum value of the metric of the served outputs, at least `min`. Default: no bound."""
    max_degradation: PositiveOrZero | None = None
    """Maximum absolute difference, in both directions, to the metric of the reference. Default: no bound."""

    def as_request(self) -> Threshold:
        """Return the threshold as the gate takes it."""
        return Threshold(self.metric, self.min, self.max, self.max_degradation)


class AccuracyRegression(ApiType):
    """How a candidate's metrics are compared with those of revisions that served before, on the same samples.

    Compared are metrics whose threshold has a `min` alone, or a `max` alone.
    """

    max_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.5
    """How much worse a metric may be besides what may be chance, in percent of its earlier value. Default: 0.5."""
    policy: Literal["Refuse", "Ignore"] = "Refuse"
    """With `Refuse`, a candidate that is worse does not serve, unless `selection.approvedRevision` names it. With
    `Ignore`, nothing is compared. Default: Refuse."""


class AccuracyGate(ApiType):
    """The accuracy gate, which a candidate must pass before it can serve."""

    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum number of samples to take from the dataloader. Default: for a single model of format `xgboost`,
    `lightgbm` or `sklearn` 4096; for all others 256."""
    thresholds: Annotated[
        list[MetricThreshold],
        Field(max_length=16, json_schema_extra=list_map("metric")),
    ] = Field(default_factory=list)
    """Bounds on metrics, all of which a candidate must meet. They need `spec.metrics`. Default: none."""
    regression: AccuracyRegression = Field(default_factory=AccuracyRegression)
    """How a candidate's metrics are compared with those of revisions that served before."""
