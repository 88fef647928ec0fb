"""The messages of conditions and records about rollouts, a function for each. Pure; it decides nothing."""

from collections.abc import Sequence
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.rollout.traffic import SoakVerdict


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


def early_verdict(cause: str) -> SoakVerdict:
    """Return the verdict on a soak that ends before its time. ``cause``: why, in words."""
    return SoakVerdict(Reason.SOAK_INCONCLUSIVE, f"the soak ended early, because {cause}")


def undo_verdict(verdict: SoakVerdict) -> SoakVerdict:
    """Return the verdict on a revision that is undone: one without a verdict says so."""
    if verdict.reason is Reason.SOAK_FAILED:
        return verdict
    message = f"it was not judged, because {verdict.message}; spec.rollout.onInconclusive is Undo"
    return SoakVerdict(Reason.SOAK_FAILED, message)


def soak_passed_message(promotion: Promotion, verdict: SoakVerdict) -> str:
    """Return the words of SoakPassed."""
    return (
        f"revision {promotion.revision} in Deployment {promotion.server}: {verdict.message}{_canary_words(promotion)}"
    )


def soak_failed_message(context: Context, promotion: Promotion, verdict: SoakVerdict) -> str:
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


def soak_inconclusive_message(promotion: Promotion, verdict: SoakVerdict) -> str:
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


def step_message(share: int, verdict: SoakVerdict) -> str:
    """Return the words about a step that is over. ``share``: its percent of the requests."""
    return f"{share} %: {'passed' if verdict.reason is Reason.SOAK_PASSED else f'inconclusive, {verdict.message}'}"


def canary_failed_message(context: Context, promotion: Promotion, share: int, verdict: SoakVerdict) -> str:
    """Return the words of SoakFailed of a revision that was no more than a canary. ``share``: its percent."""
    return (
        f"revision {promotion.revision} in Deployment {promotion.server}, with {share} % of the requests to HTTPRoute"
        f" {context.name}: {verdict.message}; Deployment {promotion.previous} stays active; this revision gets no more"
        f" of them, and is not tried again until the spec or the source changes, or you type: {context.retry_command}"
    )


def canary_abandoned_message(promotion: Promotion) -> str:
    """Return the words about a canary whose revision is not the target any more."""
    return f"the canary of Deployment {promotion.server} ended, because its revision is no longer the target"


def outage_verdict(context: Context, active: ServerView | None) -> SoakVerdict:
    """Return the verdict on an active revision of which no pod has been ready for as long as a start may take."""
    cause = f": {active.trouble.message}" if active is not None and active.trouble is not None else ""
    seconds = context.spec.serving.progress_deadline_seconds
    return SoakVerdict(Reason.SOAK_FAILED, f"none of its pods has been ready for {seconds} s{cause}")


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
