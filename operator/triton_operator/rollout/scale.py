"""Scale: have KEDA follow the load on the active revision, where the spec asks for it. Nothing else waits for this."""

from datetime import datetime, timedelta

from triton_converters.contract.reasons import Reason
from triton_operator.api.serving import Autoscaling
from triton_operator.context import Context
from triton_operator.effects import AddOn, Statement
from triton_operator.resources.autoscaling import WINDOW_SECONDS, Saturated, scaled_object
from triton_operator.rollout.wording import no_revision_condition


def scale(context: Context, is_measured: bool, share: int) -> AddOn:
    """Return the ScaledObject of the active revision, which scales by the saturation that was measured of it.

    The active revision and its saturation are both read from the last status. That was written as a whole, so the
    saturation is never another revision's. ``is_measured``: whether the active revision is being measured again.
    ``share``: percent of the route's requests that a canary gets.
    """
    autoscaling = context.spec.serving.autoscaling
    if autoscaling is None:
        return AddOn()
    if not context.settings.prometheus_address:
        return _not_scaled(
            Reason.ADD_ON_MISSING,
            "this installation names no Prometheus, so the replicas stay as they are; set the Helm value"
            " autoscaling.prometheusAddress",
        )
    if not context.observed.has_keda:
        return _not_scaled(
            Reason.ADD_ON_MISSING,
            "the API server does not know the kind ScaledObject, so the replicas stay as they are; install KEDA, then"
            " restart the operator",
        )
    active = context.triton_deployment.status.active
    performance = context.triton_deployment.status.performance
    if active is None or context.active_server is None:
        return AddOn(no_revision_condition("Autoscaling"))
    capacity = performance.saturation if performance is not None else None
    if performance is None or capacity is None or capacity.concurrency is None or float(capacity.throughput or 0) <= 0:
        return _not_scaled(
            Reason.SATURATION_UNKNOWN,
            f"no measurement of revision {active.revision} meets the latency constraints at any concurrency, so the"
            " replicas stay as they are; relax spec.selection.constraints, or lower the start of"
            " spec.performance.online.concurrency",
        )
    pause_words, seconds = _pause_words(context, is_measured, share, performance.measured_at)
    measured_saturation = Saturated(active.revision, capacity.concurrency, capacity.throughput)
    body = scaled_object(context, autoscaling, measured_saturation, paused=pause_words is not None)
    if pause_words is not None:
        return AddOn(Statement("Autoscaling", False, Reason.SCALING_PAUSED, pause_words), body, seconds)
    least = "at least " if capacity.lower_bound else ""
    message = (
        f"ScaledObject {context.name} asks for {_range_words(autoscaling)}: one replica was measured to do {least}"
        f"{capacity.throughput} inferences/s at concurrency {capacity.concurrency}, of which"
        f" {autoscaling.headroom_percent} % are left free"
    )
    return AddOn(Statement("Autoscaling", True, Reason.SCALING, message), body)


def _not_scaled(reason: Reason, message: str) -> AddOn:
    return AddOn(Statement("Autoscaling", False, reason, message))


def _range_words(autoscaling: Autoscaling) -> str:
    low, high = autoscaling.min_replicas, autoscaling.max_replicas
    return f"{low} to {high} replicas" if low < high else f"{low} replicas"


def _pause_words(context: Context, is_measured: bool, share: int, measured_at: str) -> tuple[str | None, float | None]:
    """Return why the replicas do not follow the load, and for how many seconds; None: they follow it."""
    if share:
        return "a canary takes a share of the active revision's load; the replicas of both stay until it is over", None
    if context.spec.serving.replicas == 0:
        return "spec.serving.replicas is 0, so no server runs; scaling goes on once replicas are wanted", None
    if is_measured:
        return "the active revision is measured again, and that load has the same labels; the replicas stay", None
    if measured_at:
        measured_time = datetime.fromisoformat(measured_at)
        seconds_left = (measured_time + timedelta(seconds=WINDOW_SECONDS) - context.now).total_seconds()
        if seconds_left > 0:
            return (
                f"the measurement's own load counts until {WINDOW_SECONDS} s after it; the replicas stay",
                seconds_left,
            )
    return None, None
