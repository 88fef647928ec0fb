"""Scale: have KEDA follow the load on the active revision, where the spec asks for it. Nothing else waits for this."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.api.serving import Autoscaling
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.resources.autoscaling import WINDOW_SECONDS, Saturated, scaled_object


@dataclass(frozen=True)
class Scaling:
    """What becomes of the object's scaling."""

    condition: Statement | None = None
    """The condition; None: the spec asks for no scaling."""
    scaled_object: dict[str, Any] | None = None
    """None: there should be none. The replicas stay as they are."""
    again_after: float | None = None
    """Seconds until time alone changes it."""


def scale(context: Context, measures: bool, share: int) -> Scaling:
    """The ScaledObject of the revision that the status calls active, by the saturation that the status has of it.

    Both are of the last status written, because they are written together. ``measures``: whether that revision is
    measured again. ``share``: percent of the route's requests that a canary gets.
    """
    autoscaling = context.spec.serving.autoscaling
    if autoscaling is None:
        return Scaling()
    if not context.settings.prometheus_address:
        return _not_scaled(
            Reason.PROMETHEUS_MISSING,
            "this installation names no Prometheus, so the replicas stay as they are; set the Helm value"
            " autoscaling.prometheusAddress",
        )
    if not context.observed.has_keda:
        return _not_scaled(
            Reason.KEDA_MISSING,
            "the API server does not know the kind ScaledObject, so the replicas stay as they are; install KEDA, then"
            " restart the operator",
        )
    active, performance = context.triton_deployment.status.active, context.triton_deployment.status.performance
    if active is None or context.active_server is None:
        return Scaling(Statement("Autoscaling", None, Reason.WAITING, "no revision is active yet"))
    found = performance.saturation if performance is not None else None
    if performance is None or found is None or found.concurrency is None or float(found.throughput or 0) <= 0:
        return _not_scaled(
            Reason.SATURATION_UNKNOWN,
            f"no measurement of revision {active.revision} meets the latency constraints at any concurrency, so the"
            " replicas stay as they are; relax spec.selection.constraints, or lower the start of"
            " spec.performance.online.concurrency",
        )
    words, seconds = _pause_words(context, measures, share, performance.measured_at)
    at = Saturated(active.revision, found.concurrency, found.throughput)
    body = scaled_object(context, autoscaling, at, paused=words is not None)
    if words is not None:
        return Scaling(Statement("Autoscaling", False, Reason.SCALING_PAUSED, words), body, seconds)
    least = "at least " if found.lower_bound else ""
    message = (
        f"ScaledObject {context.name} asks for {_range_words(autoscaling)}: one replica was measured to do {least}"
        f"{found.throughput} inferences/s at concurrency {found.concurrency}, of which {autoscaling.headroom_percent} %"
        " are left free"
    )
    return Scaling(Statement("Autoscaling", True, Reason.SCALING, message), body)


def _not_scaled(reason: Reason, message: str) -> Scaling:
    return Scaling(Statement("Autoscaling", False, reason, message))


def _range_words(autoscaling: Autoscaling) -> str:
    low, high = autoscaling.min_replicas, autoscaling.max_replicas
    return f"{low} to {high} replicas" if low < high else f"{low} replicas"


def _pause_words(context: Context, measures: bool, share: int, measured_at: str) -> tuple[str | None, float | None]:
    """Why the replicas stay as they are for now, and for how many seconds; None: they follow the load."""
    if share:
        return "a canary takes a share of the active revision's load; the replicas of both stay until it is over", None
    if context.spec.serving.replicas == 0:
        return "spec.serving.replicas is 0, so no server runs; scaling goes on once replicas are wanted", None
    if measures:
        return "the active revision is measured again, and that load has the same labels; the replicas stay", None
    if measured_at:
        since = datetime.fromisoformat(measured_at)
        left = (since + timedelta(seconds=WINDOW_SECONDS) - context.now).total_seconds()
        if left > 0:
            return f"the measurement's own load counts until {WINDOW_SECONDS} s after it; the replicas stay", left
    return None, None
