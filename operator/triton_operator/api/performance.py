"""What is measured, and how."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_operator.api.schema import ApiType, BatchSize, TensorName, rules

DimSize = Annotated[int, Field(ge=1, le=2147483647)]


class ConcurrencyRange(ApiType):
    """perf_analyzer's --concurrency-range: start, start + step, ... up to end."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("self.end >= self.start", "end is at least start"),
            ("(self.end - self.start) / (has(self.step) ? self.step : 1) < 16", "at most 16 concurrencies"),
        )
    )
    start: Annotated[int, Field(ge=1, le=4096)]
    """First concurrency."""
    end: Annotated[int, Field(ge=1, le=4096)]
    """Last concurrency."""
    step: Annotated[int, Field(ge=1, le=4096)] = 1
    """Default 1."""


class OfflineSweep(ApiType):
    """Static batches, one request in flight."""

    batch_sizes: Annotated[list[BatchSize], Field(min_length=1, max_length=8)]
    """At most model's maxBatchSize each."""


class OnlineSweep(ApiType):
    """Concurrent requests for the dynamic batcher."""

    batch_size: BatchSize = 1
    """Samples of a request. Default 1."""
    concurrency: ConcurrencyRange
    """Requests in flight."""


class InputDims(ApiType):
    """The shape to measure an input of varying dimensions with."""

    input: TensorName
    """Input's name."""
    dims: Annotated[list[DimSize], Field(min_length=1, max_length=8)]
    """Without the batch dimension."""


class MeasurementOptions(ApiType):
    """How perf_analyzer measures one point."""

    mode: Literal["CountWindows", "TimeWindows"] = "CountWindows"
    """Default CountWindows."""
    request_count: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Requests of a window, with CountWindows. Default 50, perf_analyzer's own."""
    interval_milliseconds: Annotated[int, Field(ge=100, le=600_000)] = 5000
    """Length of a window, with TimeWindows. Default 5000, perf_analyzer's own."""
    stability_percentage: Annotated[int, Field(ge=1, le=999)] = 10
    """How far three windows may differ. Default 10, perf_analyzer's own."""


class Regression(ApiType):
    """How a new source compares with the last one that served, in the judged sweep."""

    maximum_percent: Annotated[int, Field(ge=1, le=100)]
    """How much worse it may be, by the objectives or further beyond a constraint, at the load at which the last one
    did best; more is reported as PerformanceRegressed, and what was not measured alike as NotCompared."""
    block: bool = False
    """True: it does not serve then, as long as something else does. Default false: it is reported alone."""


class Performance(ApiType):
    """What is measured."""

    protocol: Literal["grpc", "http"] = "grpc"
    """Default grpc."""
    offline: OfflineSweep | None = None
    """Default: batch size 1 and the model's maximum."""
    online: OnlineSweep | None = None
    """Default: concurrency 1 to 4 with batch size 1."""
    input_shapes: Annotated[list[InputDims], Field(max_length=16)] = Field(default_factory=list)
    """For inputs with varying dimensions. Default: the reference's first sample."""
    measurement: MeasurementOptions = Field(default_factory=MeasurementOptions)
    """How one point is measured."""
    shared_memory: Literal["System", "None"] = "System"
    """Of the offline sweep. Default System."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Of each profile and measure Job. Default 3600."""
    regression: Regression | None = None
    """Compare a new source with the last. Default: they are not compared."""
