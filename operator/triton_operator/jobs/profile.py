"""The Job that profiles a candidate on a private server, and what is measured."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    InputShape,
    IntegerTolerance,
    Load,
    Measurement,
    OpenLoop,
    ProfileRequest,
    ServedModel,
    Sweep,
    Tolerance,
)
from triton_converters.contract.records import record_name
from triton_converters.contract.results import ProfileResult
from triton_converters.contract.saturation import latency_bounds
from triton_operator.api.duration import amount
from triton_operator.api.performance import ConcurrencyRange, MeasurementOptions, OfflineSweep, OnlineSweep
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate
from triton_operator.context import Context
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import key_measurement
from triton_operator.resources.private_server import LOOPBACK, sidecar
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT, private_inputs
from triton_operator.resources.work import Client, Work

SWEEPS_SECONDS = 20
"""Time of all sweeps of a candidate that answers a request in less than 10 ms: about ten points."""
FAST_MILLISECONDS = 300
"""Windows of such a candidate: a point takes two seconds, one of them to start perf_analyzer."""


def profile_work(context: Context, dump: Dump, attempt: Attempt) -> Work[ProfileRequest, ProfileResult]:
    """Return the Job's work. Its key covers the request, the client, and the server's whole pod.

    What `serving.autoscaling` needs to know is measured where something scales by it, and kept where it did.
    """
    work = _work(context, dump, attempt)
    if context.spec.serving.autoscaling is None or context.scales:
        return work
    is_known = record_name(work.stage, work.key) in context.observed.records
    return work if is_known else _work(_without_autoscaling(context), dump, attempt)


def _without_autoscaling(context: Context) -> Context:
    serving = context.spec.serving.model_copy(update={"autoscaling": None})
    spec = context.spec.model_copy(update={"serving": serving})
    return replace(context, triton_deployment=replace(context.triton_deployment, spec=spec))


def _work(context: Context, dump: Dump, attempt: Attempt) -> Work[ProfileRequest, ProfileResult]:
    spec = context.spec
    request = ProfileRequest(
        key="",
        revision=attempt.key,
        reference=dump.key,
        model_name=context.spec.served_name,
        max_batch_size=attempt.candidate.max_batch_size(spec),
        format=attempt.candidate.format,
        precision=attempt.candidate.precision,
        tolerance=tolerance(spec, attempt.candidate.precision),
        keep_outputs=spec.metrics is not None,
        load=sweep_load(context, LOOPBACK),
        offline=offline_sweep(context, attempt.candidate),
        online=online_sweep(context, attempt.candidate),
        open_loop=open_loop(context),
        members=tuple(
            ServedModel(member.model.name, member.format, member.precision) for member in attempt.candidate.members
        )
        if spec.ensemble
        else (),
        content=attempt.conversion.content if attempt.conversion else "",
        seconds=SWEEPS_SECONDS if has_time_limit(context) else 0,
    )
    others = (private_inputs(context), context.client_inputs)
    replaced_keys, request = key_measurement(context, "profile", request, *others)
    inputs = (layout.reference_directory(dump.key), layout.revision_directory(attempt.key))
    return Work(
        stage="profile",
        request=request,
        deadline_seconds=spec.performance.active_deadline_seconds,
        candidate=attempt.name,
        shape=Client(attempt, inputs, sidecar(context, attempt)),
        replaces=replaced_keys,
    )


def load(context: Context, host: str) -> Load:
    """Return the load settings that all measurements against one server share."""
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


def sweep_load(context: Context, host: str) -> Load:
    """Return the load settings of the sweeps, in short windows where the spec asks for neither points nor windows."""
    settings = load(context, host)
    performance = context.spec.performance
    windows = performance.measurement.model_copy(update={"stability_percent": MeasurementOptions().stability_percent})
    if performance.online is not None or windows != MeasurementOptions():
        return settings
    return replace(settings, measurement=replace(settings.measurement, fast_milliseconds=FAST_MILLISECONDS))


def has_time_limit(context: Context) -> bool:
    """Whether time ends the online sweep. An autoscaler needs the saturation itself."""
    spec = context.spec
    return spec.performance.online is None and spec.serving.autoscaling is None


def offline_sweep(context: Context, candidate: Candidate) -> Sweep:
    """Return the offline sweep: batches of fixed size, one request in flight."""
    maximum = max(1, candidate.max_batch_size(context.spec))
    sweep = context.spec.performance.offline or OfflineSweep(batch_sizes=sorted({1, maximum}))
    sizes = _accepted_sizes(context, candidate, sweep.batch_sizes)
    return Sweep(sizes, (1,), "Offline" in context.spec.performance.shared_memory)


def online_sweep(context: Context, candidate: Candidate) -> Sweep:
    """Return the online sweep of a private server: concurrencies for the dynamic batcher."""
    sweep = context.spec.performance.online or OnlineSweep(concurrency=ConcurrencyRange(start=1))
    sizes = _accepted_sizes(context, candidate, [sweep.batch_size])
    return Sweep(
        sizes,
        sweep.concurrency.concurrencies(),
        "Online" in context.spec.performance.shared_memory,
        until_saturated=sweep.concurrency.end is None,
    )


def measured_online_sweep(context: Context, attempt: Attempt) -> Sweep:
    """Return the concurrencies at which a profiled candidate was measured, to measure them again elsewhere."""
    sweep = online_sweep(context, attempt.candidate)
    if attempt.profile is None or not sweep.until_saturated:
        return sweep
    return replace(sweep, concurrencies=tuple(row.concurrency for row in attempt.profile.online), until_saturated=False)


def open_loop(context: Context) -> OpenLoop:
    """Return the request rates to measure.

    With an autoscaler, one more rate confirms that what its headroom leaves of a replica's capacity is sustained. Only
    then does the request hold constraints, whose edit measures again.
    """
    online_spec = context.spec.performance.online
    autoscaling = context.spec.serving.autoscaling
    request_rate = online_spec.request_rate if online_spec else None
    open_loop = OpenLoop(tuple(sorted(set(request_rate.rates))) if request_rate else ())
    if autoscaling is None:
        return open_loop
    bounds = latency_bounds(context.spec.selection.constraints.as_requests)
    return replace(open_loop, confirmed_percent=100 - autoscaling.headroom_percent, constraints=bounds)


def _accepted_sizes(context: Context, candidate: Candidate, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes that the candidate accepts; a model without a batch dimension accepts all of them."""
    maximum = candidate.max_batch_size(context.spec)
    return tuple(size for size in sizes if size <= maximum or maximum == 0)


def tolerance(spec: TritonDeploymentSpec, precision: str) -> Tolerance:
    """Return by how much served outputs may differ from the framework's, by the spec or else by default."""
    for each in spec.conversion.tolerances:
        if each.precision == precision:
            share = None if each.integers.share is None else float(each.integers.share)
            return Tolerance(float(each.absolute), float(each.relative), IntegerTolerance(each.integers.steps, share))
    return DEFAULT_TOLERANCES[precision]
