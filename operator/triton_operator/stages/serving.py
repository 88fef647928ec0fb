"""Serve: the target revision's Deployment, its preview, one measurement through it, then the Service's selector."""

from dataclasses import dataclass

from triton_converters.reasons import Reason
from triton_converters.request import MeasureRequest
from triton_converters.result import MeasureResult
from triton_operator import names
from triton_operator.attempt import Attempt
from triton_operator.context import Context
from triton_operator.observed import Record, ServerView
from triton_operator.resources.jobs import Work
from triton_operator.resources.server import server, serving_inputs
from triton_operator.resources.services import preview_service, service
from triton_operator.selection import best_row
from triton_operator.stages.profiling import load, online
from triton_operator.stages.step import Effects, Run, Verdict, run, waiting


@dataclass(frozen=True)
class Rollout:
    """How far the target revision is."""

    available: Verdict
    measured: Verdict
    effects: Effects
    server: str
    """Name of the target's Deployment."""
    serves: bool
    """The Service points to it, as observed."""
    record: Record | None
    """The measurement through the preview Service."""
    stalled: bool


def serve(context: Context, reference: str, target: Attempt) -> Rollout:
    """Bring the target up beside what serves, measure it, and let the Service point to it."""
    body = server(context, target.key)
    name = body["metadata"]["name"]
    view = context.observed.servers.get(name)
    serves = context.observed.serving == name
    effects = Effects((body, preview_service(context, name)))
    work = _measure_work(context, reference, target)
    known = run(context, work, start=view is not None and view.ready)
    # At rest the record is all that is left to look at; the Job stays for its log.
    effects += known.effects
    available, failed = _availability(context, view, name, serves)
    measured, passed, ended = _measurement(context, target, known)
    flips = serves or (view is not None and view.ready and ended and (passed or context.observed.serving is None))
    points_to = name if flips else context.observed.serving
    if points_to is not None:
        effects += Effects((service(context, points_to),))
    return Rollout(available, measured, effects, name, serves, known.record, failed or (ended and not passed))


def keep_serving(context: Context) -> Effects:
    """The Service of what serves, while the target is not known yet."""
    if context.observed.serving is None:
        return Effects()
    return Effects((service(context, context.observed.serving),))


def _availability(context: Context, view: ServerView | None, name: str, serves: bool) -> tuple[Verdict, bool]:
    """The condition, and whether the server failed for good."""
    if view is not None and view.ready and serves:
        return Verdict("Available", True, Reason.AVAILABLE, f"Service {context.name} points to {name}"), False
    other = context.observed.servers.get(context.observed.serving or "")
    still = f"; {other.name} goes on serving" if other is not None and not serves else ""
    up = other is not None and other.ready
    if context.spec.serving.replicas == 0:
        return Verdict("Available", False, Reason.ROLLING_OUT, "spec.serving.replicas is 0"), False
    if view is None:
        return Verdict("Available", up, Reason.ROLLING_OUT, f"Deployment {name} is created{still}"), False
    late = view.progress_deadline_exceeded or _age(context, view) > context.spec.serving.progress_deadline_seconds
    trouble = view.trouble
    if view.ready:
        return Verdict("Available", up, Reason.ROLLING_OUT, f"{name} is ready and about to be measured{still}"), False
    if late:
        last = f": {trouble.message}" if trouble else ""
        seconds = context.spec.serving.progress_deadline_seconds
        message = f"Deployment {name} was not ready within {seconds} s{last}{still}"
        reason = trouble.reason if trouble else Reason.PROGRESS_DEADLINE_EXCEEDED
        return Verdict("Available", up, reason, message), True
    if trouble is not None:
        return Verdict("Available", up, trouble.reason, trouble.message + still), False
    return Verdict("Available", up, Reason.ROLLING_OUT, f"Deployment {name} starts{still}"), False


def _age(context: Context, view: ServerView) -> float:
    """Seconds since the Deployment was made; a server that serves was ready once, so only a new one can be late."""
    if context.observed.serving == view.name:
        return 0.0
    return (context.now - view.created_at).total_seconds()


def _measurement(context: Context, target: Attempt, known: Run) -> tuple[Verdict, bool, bool]:
    """The condition, whether every constraint holds, and whether the measurement ended."""
    selection = context.spec.selection
    if known.failure is not None:
        return Verdict("PerformanceMeasured", False, known.failure.reason, known.failure.message), False, True
    if known.record is None:
        reason, message = waiting("the online sweep through the preview Service", known, context)
        return Verdict("PerformanceMeasured", False, reason, message), False, False
    result = known.record.outcome.result
    assert isinstance(result, MeasureResult)
    judged = result.online if selection.scenario == "Online" else ()
    best = best_row(judged or result.online, selection.objectives, selection.constraints if judged else ())
    if best.violation is not None:
        message = (
            f"{target.name} through the preview Service: closest row ({best.load}) has {best.violation};"
            " relax the constraint, or look for what disturbs the node"
        )
        return Verdict("PerformanceMeasured", False, Reason.CONSTRAINTS_NOT_MET, message), False, True
    message = f"{best.row.throughput:g} inferences/s, p99 {best.row.p99} us at {best.load}"
    return Verdict("PerformanceMeasured", True, Reason.MEASURED, message), True, True


def _measure_work(context: Context, reference: str, target: Attempt) -> Work:
    request = MeasureRequest(
        key="",
        revision=target.key,
        reference=reference,
        model_name=context.model.name,
        max_batch_size=context.model.config.max_batch_size,
        load=load(context, names.preview(context.name)),
        online=online(context),
    )
    image = context.spec.conversion.pod.image or context.images.converter
    key = names.result_key("measure", request.to_json(), serving_inputs(context), image, context.deployment.uid)
    return Work(
        stage="measure",
        key=key,
        request=MeasureRequest(**{**vars(request), "key": key}),
        deadline_seconds=context.spec.performance.active_deadline_seconds,
        candidate=target.name,
    )
