"""The sweeps: what is measured, and how."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_operator.api.schema import ApiType, BatchSize, TensorName, rules

DimSize = Annotated[int, Field(ge=1, le=2147483647)]


class ConcurrencyRange(ApiType):
    """Numbers of requests in flight: start, start + step and so on, up to end. At most 16."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("self.end >= self.start", "end must not be less than start"),
            (
                "(self.end - self.start) / (has(self.step) ? self.step : 1) < 16",
                "the range holds more than 16 concurrencies: narrow it, or set a larger step",
            ),
        )
    )
    start: Annotated[int, Field(ge=1, le=4096)]
    """Smallest number of requests in flight."""
    end: Annotated[int, Field(ge=1, le=4096)]
    """Upper bound of the number of requests in flight. It is at least `start`."""
    step: Annotated[int, Field(ge=1, le=4096)] = 1
    """Step from one concurrency to the next. Default: 1."""


class OfflineSweep(ApiType):
    """The offline sweep: static batches with one request in flight."""

    batch_sizes: Annotated[list[BatchSize], Field(min_length=1, max_length=8)]
    """Batch sizes to measure, in samples. Each is at most `maxBatchSize`, unless that is 0."""


class OnlineSweep(ApiType):
    """The online sweep: concurrent requests for the dynamic batcher."""

    batch_size: BatchSize = 1
    """Samples in a request, at most `maxBatchSize`, unless that is 0. Default: 1."""
    concurrency: ConcurrencyRange
    """Numbers of requests in flight to measure: start, start + step and so on, up to end; at most 16."""


class InputDims(ApiType):
    """The shape to measure an input of varying dimensions with."""

    input: TensorName
    """Name of the input."""
    dims: Annotated[list[DimSize], Field(min_length=1, max_length=8)]
    """Dimensions without the batch dimension."""


class MeasurementOptions(ApiType):
    """How perf_analyzer makes one measurement."""

    mode: Literal["CountWindows", "TimeWindows"] = "CountWindows"
    """How perf_analyzer bounds a window: by a number of requests (`CountWindows`) or by time (`TimeWindows`). Default:
    CountWindows."""
    request_count: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Number of requests in a window. It applies to CountWindows only. Default: 50, as in perf_analyzer."""
    interval_milliseconds: Annotated[int, Field(ge=100, le=600_000)] = 5000
    """Length of a window, in milliseconds. It applies to TimeWindows only. Default: 5000, as in perf_analyzer."""
    stability_percentage: Annotated[int, Field(ge=1, le=999)] = 10
    """How far three windows may differ in throughput and latency for a stable measurement, in percent. Default: 10, as
    in perf_analyzer."""


class Regression(ApiType):
    """How a new source is compared with the last other source that was active."""

    maximum_percent: Annotated[int, Field(ge=1, le=100)]
    """How much worse a new source may be, in percent, by the objectives or further beyond a constraint, at the load at
    which the last source did best. If it is worse, the condition PerformanceMeasured has the reason
    PerformanceRegressed; if the two cannot be compared, NotCompared."""
    block: bool = False
    """Whether a source that is worse is kept from serving as long as another revision is active. With false it is only
    reported. Default: false."""


class Performance(ApiType):
    """The sweeps of each candidate, and how its measurements are made."""

    protocol: Literal["grpc", "http"] = "grpc"
    """Protocol of perf_analyzer's requests. Default: grpc."""
    offline: OfflineSweep | None = None
    """The offline sweep: static batches with one request in flight. Default: batch size 1 and `maxBatchSize`."""
    online: OnlineSweep | None = None
    """The online sweep: concurrent requests for the dynamic batcher. Default: concurrency 1 to 4 with batch size 1."""
    input_shapes: Annotated[list[InputDims], Field(max_length=16)] = Field(default_factory=list)
    """Shapes to measure inputs of varying dimensions with. Default: the shape of the reference's first sample."""
    measurement: MeasurementOptions = Field(default_factory=MeasurementOptions)
    """How perf_analyzer makes one measurement."""
    shared_memory: Literal["System", "None"] = "System"
    """Shared memory between client and server in the offline sweep: `System`, or `None` to send inputs over the network
    stack. Default: System."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Time limit of each profile and measure Job, in seconds. Default: 3600."""
    regression: Regression | None = None
    """How a new source is compared with the last other source that was active. Default: no comparison."""
