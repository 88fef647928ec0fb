"""The sweeps: what is measured, and how."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from triton_operator.api.duration import Span, Within
from triton_operator.api.schema import ApiType, BatchSize, TensorName, rules

DimSize = Annotated[int, Field(ge=1, le=2147483647)]


MOST_LOADS = 16
"""The most concurrencies of one sweep: to measure one may take a minute, and the status has a row for each."""
LARGEST_CONCURRENCY = 4096
"""The largest concurrency of a sweep, in requests at a time: all of them come from one pod, which has to hold them."""


class ConcurrencyRange(ApiType):
    """Concurrencies: `start`, `start` + `step` and so on, up to `end`, or until the server is saturated.

    At most 16 values.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("!has(self.end) || self.end >= self.start", "end must not be less than start: raise end, or lower start"),
            (
                "!has(self.end) || (self.end - self.start) / (has(self.step) ? self.step : 1) < 16",
                "the range holds more than 16 values: narrow it, or set a larger step",
            ),
        )
    )
    start: Annotated[int, Field(ge=1, le=4096)]
    """Lowest concurrency."""
    end: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Upper bound of the concurrency. Default: none; the sweep ends once more concurrency brings no more throughput."""
    step: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Difference between one concurrency and the next. Default: 1 with `end`; without it, each concurrency is twice the
    one before."""

    def concurrencies(self) -> tuple[int, ...]:
        """Return the concurrencies in order; without `end`, the sweep may stop before the last."""
        if self.end is not None:
            return tuple(range(self.start, self.end + 1, self.step or 1))
        values = (
            self.start + number * self.step if self.step else self.start << number for number in range(MOST_LOADS)
        )
        return tuple(value for value in values if value <= LARGEST_CONCURRENCY)


class RequestRate(ApiType):
    """Rates at which requests arrive, whatever the server has answered: an open loop."""

    rates: Annotated[
        list[Annotated[int, Field(ge=1, le=100_000)]],
        Field(min_length=1, max_length=4),
    ]
    """Requests per second. A request has `batchSize` samples. They arrive as those of many independent clients do."""


class OfflineSweep(ApiType):
    """The offline sweep: measurements of fixed batch sizes with one request in flight."""

    batch_sizes: Annotated[list[BatchSize], Field(min_length=1, max_length=8)]
    """Batch sizes to measure, in samples, each at most `maxBatchSize` unless that is 0."""


class OnlineSweep(ApiType):
    """The online sweep: measurements of several concurrencies."""

    batch_size: BatchSize = 1
    """Samples in a request, at most `maxBatchSize` unless that is 0. Default: 1."""
    concurrency: ConcurrencyRange
    """Concurrencies (numbers of requests in flight) to measure, at most 16."""
    request_rate: RequestRate | None = None
    """Request rates to measure after the concurrencies, on the server inside the profile Job's pod. Default: none."""


class InputDims(ApiType):
    """The shape to use when measuring an input that has dimensions of any size."""

    input: TensorName
    """Name of the input."""
    dims: Annotated[list[DimSize], Field(min_length=1, max_length=8)]
    """Dimensions without the batch dimension, each at least 1."""


class MeasurementOptions(ApiType):
    """How perf_analyzer makes one measurement."""

    mode: Literal["CountWindows", "TimeWindows"] = "CountWindows"
    """What limits a window of perf_analyzer: a number of requests, or time. Default: CountWindows."""
    request_count: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Number of requests in a window. It applies to CountWindows only. Default: 50."""
    interval: Annotated[Span, Within("100ms", "10m")] = "5s"
    """Length of a window, from 100ms to 10m. It applies to TimeWindows only. Default: 5s."""
    stability_percent: Annotated[int, Field(ge=1, le=999)] = 10
    """Maximum difference between three consecutive windows of a stable measurement, in percent. Default: 10."""


class Regression(ApiType):
    """How a new source is compared with the previously active one."""

    max_percent: Annotated[int, Field(ge=1, le=100)]
    """How much worse, in percent, a new source may be at the previous one's best load."""
    block: bool = False
    """If true, a revision whose source regresses does not become active while another one is. Default: false."""


class Performance(ApiType):
    """How the performance of each candidate is measured, and how that of a new source is compared."""

    protocol: Literal["grpc", "http"] = "grpc"
    """Protocol of perf_analyzer's requests. Default: grpc."""
    offline: OfflineSweep | None = None
    """The offline sweep: measurements of fixed batch sizes with one request in flight. Default: batch sizes 1 and
    `maxBatchSize`."""
    online: OnlineSweep | None = None
    """The online sweep: measurements of several concurrencies. Default: batch size 1, and concurrencies that double
    from 1 until the server is saturated."""
    input_shapes: Annotated[list[InputDims], Field(max_length=16)] = Field(default_factory=list)
    """Shapes of inputs that have dimensions of any size. Default: the shapes of the reference's samples, in their
    proportions."""
    measurement: MeasurementOptions = Field(default_factory=MeasurementOptions)
    """How perf_analyzer makes one measurement."""
    shared_memory: Annotated[
        tuple[Literal["Offline", "Online"], ...],
        Field(max_length=2, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ("Offline",)
    """The sweeps of a profile or search Job whose tensors pass between client and server by system shared memory;
    `Online` includes the request rates. An empty list: all pass by the network, as those of a measure Job always do.
    Default: Offline."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Time limit, in seconds, of a pod of a profile or measure Job, once a node took it. A search Job has it besides
    its measuring time. Default: 3600."""
    regression: Regression | None = None
    """How a new source is compared with the previously active one. Default: no comparison."""
