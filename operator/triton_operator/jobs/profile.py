"""The Job that profiles a candidate on a private server, and what is measured."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    InputShape,
    Load,
    Measurement,
    OpenLoop,
    ProfileRequest,
    ServedModel,
    Sweep,
    Tolerance,
)
from triton_converters.contract.results import ProfileResult
from triton_converters.contract.saturation import latency_bounds
from triton_operator.api.duration import amount
from triton_operator.api.performance import ConcurrencyRange, OfflineSweep, OnlineSweep
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.combination import Combination
from triton_operator.context import Context
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import measured
from triton_operator.resources.job import LOOPBACK, sidecar
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT, private_inputs
from triton_operator.resources.work import Work


def profile_work(context: Context, dump: Dump, attempt: Attempt) -> Work[ProfileRequest, ProfileResult]:
    """The Job's work. Its key covers the request, the client, and the server's whole pod."""
    spec = context.spec
    request = ProfileRequest(
        key="",
        revision=attempt.key,
        reference=dump.key,
        model_name=context.spec.served_name,
        max_batch_size=attempt.candidate.max_batch_size(spec),
        format=attempt.candidate.format,
        precision=attempt.candidate.precision,
        tolerance=tolerance(context, attempt.candidate.precision),
        keep_outputs=spec.metrics is not None,
        load=load(context, LOOPBACK),
        offline=offline(context, attempt.candidate),
        online=online(context, attempt.candidate),
        open_loop=open_loop(context),
        members=tuple(
            ServedModel(member.model.name, member.format, member.precision) for member in attempt.candidate.members
        )
        if spec.ensemble
        else (),
        content=attempt.conversion.content if attempt.conversion else "",
    )
    replaced, request = measured(context, "profile", request, private_inputs(context), context.client_inputs)
    return Work(
        stage="profile",
        request=request,
        deadline_seconds=spec.performance.active_deadline_seconds,
        candidate=attempt.name,
        boxed=context.boxes_clients,
        inputs=(layout.reference_directory(dump.key), layout.revision_directory(attempt.key)),
        sidecar=sidecar(context, attempt),
        served=attempt,
        tensorrt_version=attempt.tensorrt_version,
        replaces=replaced,
    )


def load(context: Context, host: str) -> Load:
    """The load settings that all measurements against one server share."""
    performance, measurement = context.spec.performance, context.spec.performance.measurement
    port = GRPC_PORT if performance.protocol == "grpc" else HTTP_PORT
    return Load(
        url=f"{host}:{port}",
        protocol=performance.protocol,
        http_url=f"{host}:{HTTP_PORT}",
        input_shapes=tuple(InputShape(each.input, tuple(each.dims)) for each in performance.input_shapes),
        measurement=Measurement(
            mode=measurement.mode,
            request_count=measurement.request_count,
            interval_milliseconds=ceil(amount(measurement.interval, "ms")),
            stability_percentage=measurement.stability_percent,
        ),
    )


def offline(context: Context, candidate: Combination) -> Sweep:
    """The offline sweep: batches of fixed size, one request in flight."""
    maximum = max(1, candidate.max_batch_size(context.spec))
    given = context.spec.performance.offline or OfflineSweep(batch_sizes=sorted({1, maximum}))
    sizes = _served(context, candidate, given.batch_sizes)
    return Sweep(sizes, (1,), context.spec.performance.shared_memory == "System")


def online(context: Context, candidate: Combination) -> Sweep:
    """The online sweep: concurrencies for the dynamic batcher; the client sends its inputs and shares no memory."""
    # An autoscaler needs the saturation, not its lower bound.
    end = None if context.spec.serving.autoscaling else 4
    given = context.spec.performance.online or OnlineSweep(concurrency=ConcurrencyRange(start=1, end=end))
    sizes = _served(context, candidate, [given.batch_size])
    return Sweep(sizes, given.concurrency.concurrencies(), False, until_saturated=given.concurrency.end is None)


def measured_online(context: Context, attempt: Attempt) -> Sweep:
    """The concurrencies at which a profiled candidate was measured, to measure them again elsewhere."""
    sweep = online(context, attempt.candidate)
    if attempt.profile is None or not sweep.until_saturated:
        return sweep
    return replace(sweep, concurrencies=tuple(row.concurrency for row in attempt.profile.online), until_saturated=False)


def open_loop(context: Context) -> OpenLoop:
    """The request rates to measure.

    With an autoscaler, one more rate confirms that what its headroom leaves of a replica's capacity is sustained. Only
    then does the request hold constraints, whose edit measures again.
    """
    given, autoscaling = context.spec.performance.online, context.spec.serving.autoscaling
    asked = given.request_rate if given else None
    open_loop = OpenLoop(tuple(sorted(set(asked.rates))), asked.distribution) if asked else OpenLoop(())
    if autoscaling is None:
        return open_loop
    bounds = latency_bounds(context.spec.selection.constraints.asked)
    return replace(open_loop, confirmed_percent=100 - autoscaling.headroom_percent, constraints=bounds)


def _served(context: Context, candidate: Combination, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that the candidate accepts; a model without a batch dimension accepts all of them."""
    maximum = candidate.max_batch_size(context.spec)
    return tuple(size for size in sizes if size <= maximum or maximum == 0)


def tolerance(context: Context, precision: str) -> Tolerance:
    """How far served outputs may differ from the framework's."""
    for each in context.spec.conversion.tolerances:
        if each.precision == precision:
            return Tolerance(float(each.absolute), float(each.relative))
    return DEFAULT_TOLERANCES[precision]
