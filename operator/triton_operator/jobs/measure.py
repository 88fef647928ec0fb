"""The Job that measures a revision through the preview Service."""

from dataclasses import replace

from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import MeasureResult
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.jobs.profile import measured_online_sweep, sweep_load
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import key_measurement
from triton_operator.resources.server import serving_inputs
from triton_operator.resources.work import Client, Work

MeasureWork = Work[MeasureRequest, MeasureResult]


def measure_work(
    context: Context, dump: Dump, target: Attempt, concurrencies: tuple[int, ...] | None = None
) -> MeasureWork:
    """Return the Job's work. Its key covers the request, the client, the server's whole pod, and the object.

    The client reaches the server through a Service, so it shares no memory with it.
    ``concurrencies``: those of the target's profile that are measured; None: all.
    """
    sweep = replace(measured_online_sweep(context, target), shared_memory=False)
    request = MeasureRequest(
        key="",
        revision=target.key,
        reference=dump.key,
        model_name=context.spec.served_name,
        max_batch_size=target.candidate.max_batch_size(context.spec),
        load=sweep_load(context, names.preview(context.name)),
        online=sweep if concurrencies is None else replace(sweep, concurrencies=concurrencies),
    )
    surroundings = (serving_inputs(context), context.client_inputs, context.triton_deployment.uid)
    replaced_keys, request = key_measurement(context, "measure", request, *surroundings)
    return Work(
        stage="measure",
        request=request,
        deadline_seconds=context.spec.performance.active_deadline_seconds,
        candidate=target.name,
        shape=Client(target, (layout.reference_directory(dump.key),), None),
        replaces=replaced_keys,
    )
