"""The messages of conditions and records about rollouts, a function for each. Pure; it decides nothing."""

import math
from collections.abc import Sequence
from datetime import datetime

from triton_converters.contract.figures import as_written, telling
from triton_converters.contract.reasons import Reason
from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.rollout.traffic import Traffic, Verdict


def no_revision_condition(kind: ConditionType) -> Statement:
    """Return a condition that waits for a first revision."""
    return Statement(kind, None, Reason.WAITING, "no revision is active yet")


def not_recorded_condition() -> Statement:
    """Return the condition if the active revision's beginning is not recorded, so that it cannot be soaked."""
    message = "no other revision was active before, or spec.serving.soak was not set then; the next one is soaked"
    return Statement("Soaked", None, Reason.WAITING, message)


def served_before_condition() -> Statement:
    """Return the condition of a revision that the spec names, which is not soaked."""
    message = "spec.rollout.revision names a revision that served before, so it is not soaked"
    return Statement("Soaked", None, Reason.WAITING, message)


def soaking_condition(context: Context, reason: Reason, promotion: Promotion, end: datetime) -> Statement:
    """Return the condition of a soak that goes on. ``end``: when it is judged next."""
    if promotion.down_since:
        deadline = context.spec.serving.progress_deadline_seconds
        message = f"none of the pods of Deployment {promotion.server} has been ready since"
        message += f" {datetime.fromisoformat(promotion.down_since):%H:%M:%S} UTC; if that lasts for {deadline} s,"
        message += f" {promotion.previous} becomes active again"
    elif context.now < end and promotion.held_since:
        message = f"Deployment {promotion.previous} still runs, because {promotion.server} is held after its soak"
        message += f", and is judged next at {end:%H:%M:%S} UTC"
    elif context.now < end:
        message = f"Deployment {promotion.server} is soaked until {end:%H:%M:%S} UTC"
        message += f"; until then {promotion.previous} runs too"
        message += _canary_words(promotion)
    elif context.spec.suspend:
        message = f"the soak of Deployment {promotion.server} is over, and is judged once spec.suspend is false"
    else:
        message = f"the counters of Deployment {promotion.server} at the end of the soak {_reading_words(context)}"
        message += f"; {promotion.previous} still runs"
    return Statement("Soaked", None, reason, f"{message}{_held_words(promotion)}")


def superseded_verdict(server: str) -> Verdict:
    """Return the verdict on a soak that ends because a third revision starts in Deployment ``server``."""
    return _early_verdict(f"Deployment {server} starts with another revision")


def previous_gone_verdict(promotion: Promotion) -> Verdict:
    """Return the verdict on a soak whose previous revision cannot come back any more."""
    return _early_verdict(f"Deployment {promotion.previous}, which was active before, is gone")


def no_replicas_verdict() -> Verdict:
    """Return the verdict on a soak of which the spec wants no server any more."""
    return _early_verdict("spec.serving.replicas is 0")


def _early_verdict(cause: str) -> Verdict:
    return Verdict(Reason.SOAK_INCONCLUSIVE, f"the soak ended early, because {cause}")


def undo_verdict(verdict: Verdict) -> Verdict:
    """Return the verdict on a revision that is undone: one without a verdict says so."""
    if verdict.reason is Reason.SOAK_FAILED:
        return verdict
    message = f"it was not judged, because {verdict.message}; spec.rollout.onInconclusive is Undo"
    return Verdict(Reason.SOAK_FAILED, message)


def soak_passed_message(promotion: Promotion, verdict: Verdict) -> str:
    """Return the words of SoakPassed."""
    return (
        f"revision {promotion.revision} in Deployment {promotion.server}: {verdict.message}{_canary_words(promotion)}"
    )


def soak_failed_message(context: Context, promotion: Promotion, verdict: Verdict) -> str:
    """Return the words of SoakFailed, without those about the previous revision."""
    return (
        f"{soak_passed_message(promotion, verdict)}; this revision is not tried again until the spec or the source"
        f" changes, or you type: {context.retry_command}"
    )


def undone_condition(promotion: Promotion) -> Statement:
    """Return the condition of a revision that failed, and whose previous one is active again, or always was."""
    is_back = "" if promotion.by_route else f"Deployment {promotion.previous} is active again; "
    return Statement("Soaked", False, Reason.SOAK_FAILED, f"{is_back}{promotion.message}")


def not_undone_condition(promotion: Promotion, previous: ServerView | None) -> Statement:
    """Return the condition of a revision that failed and still serves, because the previous one does not answer.

    ``previous``: the Deployment that was active before; None: it is gone.
    """
    cause = f"Deployment {promotion.previous}, which was active before, is gone, so {promotion.server} stays"
    if previous is not None:
        trouble = f": {previous.trouble.message}" if previous.trouble is not None else ""
        cause = (
            f"Deployment {promotion.server} failed and stays until {promotion.previous}, which was active before,"
            f" answers{trouble}; to keep the active revision, remove spec.serving.soak"
        )
    return Statement("Soaked", False, Reason.SOAK_FAILED, f"{cause}; {promotion.message}")


def soak_inconclusive_message(promotion: Promotion, verdict: Verdict) -> str:
    """Return the words of SoakInconclusive; a revision that failed stays if the previous one is gone."""
    message = f"{soak_passed_message(promotion, verdict)}; it stays without a verdict"
    has_failed = verdict.reason is Reason.SOAK_FAILED
    return f"{message}, because Deployment {promotion.previous} is gone" if has_failed else message


def no_room_message(active: str, target: str) -> str:
    """Return the words of NoSpareGpu: no revision could come back at once, so there is no soak."""
    return (
        f"Deployment {active} had to make room for {target}, so nothing could come back at once; the new revision stays"
        " without a soak"
    )


def canary_condition(
    context: Context, reason: Reason, promotion: Promotion, steps: Sequence[int], end: datetime, answers: bool
) -> Statement:
    """Return the condition of a canary that goes on.

    ``steps``: the shares of all steps, in percent. ``end``: when the present one is judged next. ``answers``: whether a
    pod of the revision is ready.
    """
    step = min(len(promotion.steps), len(steps) - 1)
    if context.spec.suspend:
        progress = "it waits, because spec.suspend is true"
    elif not answers:
        progress = "none of its pods is ready, so it gets no request for now"
    else:
        is_due = context.now >= end
        progress = f"its counters {_reading_words(context)}" if is_due else f"it is judged at {end:%H:%M:%S} UTC"
    message = (
        f"step {step + 1} of {len(steps)}: Deployment {promotion.server} gets {steps[step]} % of the requests to"
        f" HTTPRoute {context.name}; {progress}{''.join(f'; {each}' for each in promotion.steps)}"
        f"{_held_words(promotion)}"
    )
    return Statement("Soaked", None, reason, message)


def step_message(share: int, verdict: Verdict) -> str:
    """Return the words about a step that is over. ``share``: its percent of the requests."""
    return f"{share} %: {'passed' if verdict.reason is Reason.SOAK_PASSED else f'inconclusive, {verdict.message}'}"


def canary_failed_message(context: Context, promotion: Promotion, share: int, verdict: Verdict) -> str:
    """Return the words of SoakFailed of a revision that was no more than a canary. ``share``: its percent."""
    return (
        f"revision {promotion.revision} in Deployment {promotion.server}, with {share} % of the requests to HTTPRoute"
        f" {context.name}: {verdict.message}; Deployment {promotion.previous} stays active; this revision gets no more"
        f" of them, and is not tried again until the spec or the source changes, or you type: {context.retry_command}"
    )


def canary_abandoned_message(promotion: Promotion) -> str:
    """Return the words about a canary whose revision is not the target any more."""
    return f"the canary of Deployment {promotion.server} ended, because its revision is no longer the target"


def unread_verdict(moment: str, trouble: Trouble | None, *, spoiled: bool) -> Verdict:
    """Return the verdict if counters were not read. ``moment``: when, in words. ``spoiled``: as `Verdict.spoiled`."""
    cause = f": {trouble.message}" if trouble is not None else ""
    return Verdict(Reason.SOAK_INCONCLUSIVE, f"the servers' counters {moment} were not read{cause}", spoiled)


def outage_verdict(seconds: int, trouble: Trouble | None) -> Verdict:
    """Return the verdict on a revision of which no pod has been ready for so many seconds, and so answers nothing."""
    cause = f": {trouble.message}" if trouble is not None else ""
    return Verdict(Reason.SOAK_FAILED, f"none of its pods has been ready for {seconds} s{cause}")


def restart_verdict(pod: str, moment: str, trouble: Trouble | None) -> Verdict:
    """Return the verdict on a revision whose server ended by itself."""
    cause = f": {trouble.message}" if trouble is not None else ""
    message = f"tritonserver in pod {pod} ended {moment}, and was started again{cause}"
    return Verdict(Reason.SOAK_FAILED, message)


def both_restarted_verdict(pod: str, moment: str, other: str) -> Verdict:
    """Return the verdict if servers of both revisions ended, as with their node. ``other``: the other Deployment."""
    message = f"tritonserver in pod {pod} ended {moment}, and so did one of Deployment {other}"
    message += "; look for what became of the node"
    return Verdict(Reason.SOAK_INCONCLUSIVE, message, spoiled=True)


def few_requests_verdict(traffic: Traffic, min_requests: int) -> Verdict:
    """Return the verdict on a revision that answered fewer requests than can be judged."""
    return Verdict(
        Reason.SOAK_INCONCLUSIVE, f"it answered {traffic.requests} requests, and minRequests is {min_requests}"
    )


def many_errors_verdict(errors: str, max_percent: float, previous: Traffic | None) -> Verdict:
    """Return the verdict on a revision that failed too many requests."""
    return Verdict(
        Reason.SOAK_FAILED, f"{errors}, and maxErrorPercent is {as_written(max_percent)}; {_previous_words(previous)}"
    )


def latency_not_compared_verdict(errors: str, previous: Traffic | None) -> Verdict:
    """Return the verdict if the previous revision answered too few requests for a comparison."""
    message = f"{errors}; the mean latency is not compared: {_previous_words(previous)}"
    return Verdict(Reason.SOAK_INCONCLUSIVE, message)


def much_slower_verdict(latency: str, slower_percent: float, max_percent: int) -> Verdict:
    """Return the verdict on a revision that is too slow."""
    return Verdict(
        Reason.SOAK_FAILED,
        f"{latency}: {_percent(slower_percent, max_percent)} more, and maxLatencyPercent is {max_percent}",
    )


def did_well_verdict(errors: str, latency: str) -> Verdict:
    """Return the verdict on a revision that did as well as the previous one."""
    return Verdict(Reason.SOAK_PASSED, f"{errors}; {latency}")


def error_words(pods: str, traffic: Traffic, max_percent: float) -> str:
    """Return the words about the requests that failed in ``pods``."""
    return f"{_percent(traffic.failed_percent, max_percent)} of {traffic.requests} requests failed in {pods}"


def latency_words(pods: str, traffic: Traffic, previous: Traffic, when: str) -> str:
    """Return the words about the mean latency of ``pods``. ``when``: when the previous revision answered, in words."""
    return f"the mean latency is {_milliseconds(traffic)} in {pods}, and was {_milliseconds(previous)} {when}"


def _previous_words(previous: Traffic | None) -> str:
    if previous is None:
        return "the requests to the previous revision are not known"
    failed_share = f"{_percent(previous.failed_percent)} failed"
    return f"the previous revision answered {previous.requests} requests, of which {failed_share}"


def _percent(value: float, bound: float = math.inf) -> str:
    (figure,) = telling([value], lambda each: each > bound, 3)
    return f"{figure} %"


def _milliseconds(traffic: Traffic) -> str:
    return f"{traffic.latency / 1000:.3g} ms"


def _held_words(promotion: Promotion) -> str:
    """Return words about why there is no verdict, and what a person may do; empty: its time is not over."""
    if not promotion.held_since:
        return ""
    choice = "it is judged as more requests come, or set spec.rollout.onInconclusive to Continue or Undo"
    return f"; there is no verdict yet, because {promotion.message}; {choice}"


def _reading_words(context: Context) -> str:
    """Return words about a Job that reads counters, and about what it waits for."""
    if not context.observed.claim_terminates:
        return "are read"
    return f"are read once PersistentVolumeClaim {context.claim_name}, which is being deleted, is made anew"


def _canary_words(promotion: Promotion) -> str:
    """Return words about the canary before the move; empty if there was none."""
    return f"; its canary before that: {', '.join(promotion.steps)}" if promotion.steps else ""


def not_allowed(field: str, value: str, kind: str, setting: str) -> str:
    """Say of a field that it names what the installation does not allow. ``setting``: the Helm value to change."""
    return (
        f"{field} names {kind} {value}, which this installation does not allow; use another, or ask the"
        f" administrator who installed the operator to add it to the Helm value {setting}"
    )
