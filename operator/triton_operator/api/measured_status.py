"""What the status tells of measurements: rows, accuracy, saturation, and where they were made."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from triton_converters.contract.accuracy import Accuracy
from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.results import Mix, Row
from triton_converters.contract.saturation import saturation, sustained
from triton_converters.contract.step_times import StepTimes
from triton_converters.contract.text import is_time
from triton_operator.api import quantity
from triton_operator.api.duration import MeasuredDuration, measured
from triton_operator.api.fitting import StatusType

_FIGURE = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?(e[+-]?[0-9]{1,2})?")


def _figure(text: str) -> str:
    if text and not _FIGURE.fullmatch(text):
        raise ValueError("it is no decimal number")
    return text


def _time(text: str) -> str:
    if text and not is_time(text):
        raise ValueError("it is no time in RFC 3339")
    return text


Figure = Annotated[str, AfterValidator(_figure)]
"""A number that is computed with. A status may hold what somebody wrote into a record of it."""
Time = Annotated[str, AfterValidator(_time)]
"""A time that is computed with."""


class AccuracyStatus(StatusType):
    """A metric of the active revision."""

    metric: str
    """Name of the metric."""
    framework: str
    """Value for the framework's outputs (the reference)."""
    served: str
    """Value for the served outputs."""
    converted: str = ""
    """Value for the outputs of the converted file in its format's own runtime, outside Triton; empty: it has none in
    the Job, or an ensemble is served."""
    previous: str = ""
    """Value of the revision that served before, with another reference, on the same samples; empty: not compared."""
    anchor: str = ""
    """Value of the anchor on the same samples; empty: not compared, or it is the revision that served before."""
    samples: int
    """Number of samples that the metric was computed from."""
    threshold: str = ""
    """The threshold in words; empty if there is none."""
    passed: bool
    """Whether the metric meets its threshold; true if there is none."""


class QuantizationStatus(StatusType):
    """What the INT8 graph of a candidate is like, on the processor of its conversion Job."""

    method: str
    """Method that made the graph: `Static`, `StaticProducts` or `Dynamic` (docs/converters.md)."""
    operators: int
    """Number of convolutions and matrix products in the optimized graph."""
    int8_operators: int
    """Number of these that run in INT8."""
    signal_to_noise: str = ""
    """Signal-to-noise ratio of the worst floating point output, in decibels."""
    speedup: str
    """Time of the fp32 graph divided by that of the INT8 graph."""
    calibration_samples: int
    """Number of samples that calibrated the graph; 0: the method needs none."""

    def sentence(self) -> str:
        """Return all of it in words."""
        ratio = f", with a signal-to-noise ratio of {self.signal_to_noise} dB" if self.signal_to_noise else ""
        samples = f", {self.calibration_samples} calibration samples" if self.calibration_samples else ""
        return (
            f"{self.int8_operators} of {self.operators} convolutions and matrix products run in INT8"
            f" ({self.method}{samples}), {self.speedup} times as fast as fp32 in the conversion Job{ratio}"
        )


def quantization_status(quantized: Quantized) -> QuantizationStatus:
    """Return the status of an INT8 graph."""
    ratio = quantized.signal_to_noise
    return QuantizationStatus(
        method=quantized.method,
        operators=quantized.operators,
        int8_operators=quantized.int8_operators,
        signal_to_noise="" if ratio is None else f"{ratio:.1f}",
        speedup=f"{quantized.speedup:.2f}",
        calibration_samples=quantized.calibration_samples,
    )


class RowStatus(StatusType):
    """One measurement.

    Times and latencies have three significant digits, such as 18.3ms. The times are means; but for
    the rounding they add up to `averageLatency`.
    """

    precision: str
    """Precision of the candidate; in an ensemble, the lowest."""
    accelerator: str
    """Accelerator of the candidate; in an ensemble, those of its models, joined by "+"."""
    input_shape: str = ""
    """Shapes from `performance.inputShapes`, such as "INPUT__0:3x224x224"."""
    batch_size: int
    """Samples in a request."""
    concurrency: int | None = None
    """Requests in flight. Absent if `requestRate` is set."""
    request_rate: int | None = None
    """Requests per second that were sent. Absent if `concurrency` is set."""
    throughput: Figure
    """Throughput in inferences (samples) per second."""
    client_send_time: MeasuredDuration
    """Time to serialize and send the request."""
    network_time: MeasuredDuration
    """Time on the network, and in the server's receiving and sending."""
    queue_time: MeasuredDuration
    """Time in the server's queue."""
    compute_input_time: MeasuredDuration
    """Time to prepare the inputs."""
    compute_infer_time: MeasuredDuration
    """Time that the model runs."""
    compute_output_time: MeasuredDuration
    """Time to prepare the outputs."""
    client_receive_time: MeasuredDuration
    """Time to receive and parse the response."""
    p50_latency: MeasuredDuration
    """Median latency."""
    p90_latency: MeasuredDuration
    """90th percentile of the latency."""
    p95_latency: MeasuredDuration
    """95th percentile of the latency."""
    p99_latency: MeasuredDuration
    """99th percentile of the latency."""
    average_latency: MeasuredDuration
    """Mean latency."""
    stable: bool
    """Whether three consecutive windows differed by at most `stabilityPercent`."""
    spread_percent: str = ""
    """Range of the windows' throughput, in percent of their mean."""
    client_bound: bool | None = None
    """Whether the client, not the server, was the bottleneck."""
    memory: Annotated[str, Field(max_length=24)] = ""
    """Peak memory in use, of the GPU, or of the node if there is none."""


class EnvironmentStatus(StatusType):
    """Where the measurements were made."""

    device: str
    """Device that the model ran on, cpu or gpu."""
    gpu_product: str = ""
    """Name of the GPU product."""
    gpu_driver: str | None = None
    """Version of the GPU's driver, and of its CUDA."""
    tensorrt_version: str = ""
    """Version of TensorRT in the server's image."""
    server_version: str
    """Version of tritonserver."""
    image: str
    """Image of the server."""
    image_digest: str = ""
    """Digest of the server's image, as the kubelet reports it."""
    cpu: str
    """Processor model, and number of cores of the measuring container."""
    perf_analyzer: Annotated[list[str], Field(max_length=4)]
    """Command line of perf_analyzer for each sweep."""


class SaturationStatus(StatusType):
    """The throughput at which one replica is saturated, from the online sweep inside the profile Job's pod."""

    ended: Literal["Constraint", "Plateau", "RangeEnd"]
    """What limits the throughput: a latency `Constraint`, a `Plateau` (less than 5 % more), or nothing up to the
    `RangeEnd`."""
    concurrency: int | None = None
    """Lowest concurrency within 5 % of the highest throughput that meets the latency constraints."""
    throughput: Figure = ""
    """Throughput at that concurrency, in inferences per second."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency at that concurrency, such as 18.3ms."""
    lower_bound: bool | None = None
    """Whether one replica may do more: the sweep ended before, or the client was the bottleneck."""
    sustained_request_rate: int | None = None
    """Highest rate of requests per second that the replica kept up with, within the latency constraints."""


class LengthsStatus(StatusType):
    """How long a dimension of an input is, over the samples that were sent."""

    input: str
    """Name of the input, one of those that are always equally long."""
    dimension: int
    """The dimension, counted from 0, without the batch dimension."""
    min: int
    """The shortest, in elements."""
    median: int
    """The median, in elements."""
    p90: int
    """The 90th percentile, in elements."""
    max: int
    """The longest, in elements."""


class MixedShapesStatus(StatusType):
    """The samples of different shapes that were sent."""

    samples: int
    """Number of samples."""
    shapes: int
    """Number of different shapes."""
    lengths: Annotated[list[LengthsStatus], Field(max_length=4)] = Field(default_factory=list)
    """Lengths of the dimensions that differ between samples."""


class StepStatus(StatusType):
    """Where the time of a request to an ensemble goes: the part of one of its models.

    The times are means, by the server's statistics, with three significant digits, such as 18.3ms.
    """

    model: str
    """Name of the model, as in `spec.models`."""
    queue_time: MeasuredDuration
    """Time that the request waits in the model's queue."""
    compute_time: MeasuredDuration
    """Time to prepare the model's inputs, to run it and to prepare its outputs."""
    share_percent: Figure
    """`queueTime` and `computeTime` in percent of the average latency."""


class PerformanceStatus(StatusType):
    """The sweeps of the active revision."""

    offline: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Measurements of the offline sweep, in the profile Job's pod."""
    online: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Measurements of the online sweep through the preview Service; without `performance.online`, of the loads around
    the chosen one."""
    request_rate: Annotated[list[RowStatus], Field(max_length=8)] = Field(default_factory=list)
    """Measurements of request rates, in the profile Job's pod."""
    steps: Annotated[list[StepStatus], Field(max_length=8)] | None = None
    """The times of each model of an ensemble, at the load of `serving.throughput`."""
    saturation: SaturationStatus | None = None
    """The throughput at which one replica is saturated."""
    mixed_shapes: MixedShapesStatus | None = None
    """The shapes of the samples that were sent. Absent if all have one shape, or `performance.inputShapes` sets it."""
    environment: EnvironmentStatus | None = None
    """Where the measurements were made."""
    measured_at: Time = ""
    """When the online sweep's Job ended, as an RFC 3339 time in UTC."""


def row_status(row: Row, precision: str, accelerator: str, input_shape: str) -> RowStatus:
    """Return the status of a measured row of a candidate."""
    return RowStatus(
        precision=precision,
        accelerator=accelerator,
        input_shape=input_shape,
        batch_size=row.batch_size,
        concurrency=row.concurrency or None,
        request_rate=row.request_rate or None,
        throughput=f"{row.throughput:.1f}",
        client_send_time=measured(row.client_send),
        network_time=measured(row.network),
        queue_time=measured(row.queue),
        compute_input_time=measured(row.compute_input),
        compute_infer_time=measured(row.compute_infer),
        compute_output_time=measured(row.compute_output),
        client_receive_time=measured(row.client_receive),
        p50_latency=measured(row.p50),
        p90_latency=measured(row.p90),
        p95_latency=measured(row.p95),
        p99_latency=measured(row.p99),
        average_latency=measured(row.average),
        stable=row.stable,
        spread_percent=f"{row.spread:.1f}" if row.spread else "",
        client_bound=row.client_bound or None,
        memory=quantity.total([str(row.memory_bytes)]) if row.memory_bytes else "",
    )


def steps_status(steps: Sequence[StepTimes], at: int, row: Row, models: Sequence[str]) -> list[StepStatus] | None:
    """Return the times of an ensemble's models in one row of a sweep, in the order of ``models``; None: of none.

    ``at``: the row's place in the sweep. What names no model of the object is left out.
    """
    found = {each.model: (each.queue[at], each.compute[at]) for each in steps}
    told = [
        StepStatus(
            model=model,
            queue_time=measured(found[model][0]),
            compute_time=measured(found[model][1]),
            share_percent=f"{100 * sum(found[model]) / row.average:.1f}" if row.average else "",
        )
        for model in models
        if model in found
    ]
    return told or None


def saturation_status(
    online: Sequence[Row], rates: Sequence[Row], constraints: Sequence[Constraint]
) -> SaturationStatus | None:
    """Return the saturation of one replica, from the sweeps of its profile; None if nothing was measured online."""
    found = saturation(online, constraints)
    if found is None:
        return None
    row = found.row
    return SaturationStatus(
        ended=found.ended.value,
        concurrency=row.concurrency if row else None,
        throughput=f"{row.throughput:.1f}" if row else "",
        p99_latency=measured(row.p99) if row else None,
        lower_bound=found.is_lower_bound or None,
        sustained_request_rate=sustained(rates, constraints) or None,
    )


def mixed_shapes_status(mix: Mix | None) -> MixedShapesStatus | None:
    """Return the status of the shapes in which samples were sent; None if all have one."""
    if mix is None:
        return None
    lengths = [
        LengthsStatus(
            input=each.input,
            dimension=each.dimension,
            min=each.minimum,
            median=each.median,
            p90=each.p90,
            max=each.maximum,
        )
        for each in mix.lengths
    ]
    return MixedShapesStatus(samples=mix.samples, shapes=mix.shapes, lengths=lengths)


def accuracy_status(
    accuracy: Sequence[Accuracy], samples: int, earlier: Mapping[str, Mapping[str, str]]
) -> list[AccuracyStatus]:
    """Return the status of judged metrics, in their order.

    ``earlier``: by metric, the fields with the values of earlier revisions.
    """
    told = [(each, *each.figures) for each in accuracy]
    return [
        AccuracyStatus(
            metric=each.metric,
            framework=framework,
            served=served,
            converted=each.converted_figure,
            samples=samples,
            threshold=each.threshold_words,
            passed=each.passed,
            **earlier.get(each.metric, {}),
        )
        for each, framework, served in told
    ]
