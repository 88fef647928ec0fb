"""What conditions and records say of soaks and canaries: a function for each reason. Pure; it decides nothing."""

from collections.abc import Sequence
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.effects import Verdict
from triton_operator.observed.flips import Flip
from triton_operator.observed.trouble import Trouble
from triton_operator.rollout.traffic import Judgement, Traffic


def no_revision() -> Verdict:
    """Return the condition of a soak that waits for a first revision."""
    return Verdict("Soaked", None, Reason.WAITING, "no revision is active yet")


def not_recorded() -> Verdict:
    """Return the condition where the active revision's beginning is not recorded, so that it cannot be soaked."""
    words = "no other revision was active before, or spec.serving.soak was not set then; the next one is soaked"
    return Verdict("Soaked", None, Reason.WAITING, words)


def served_before() -> Verdict:
    """Return the condition of a revision that the spec names, which is not soaked."""
    words = "spec.rollout.revision names a revision that served before, so it is not soaked"
    return Verdict("Soaked", None, Reason.WAITING, words)


def soaking(context: Context, reason: Reason, flip: Flip, end: datetime) -> Verdict:
    """Return the condition of a soak that goes on. ``end``: when it is judged next."""
    if context.now < end and flip.held_since:
        words = (
            f"Deployment {flip.previous} still runs, because {flip.server} is held after its soak, and is judged next"
        )
        words += f" at {end:%H:%M:%S} UTC"
    elif context.now < end:
        words = f"Deployment {flip.server} is soaked until {end:%H:%M:%S} UTC; until then {flip.previous} runs too"
        words += _after_canary(flip)
    elif context.spec.suspend:
        words = f"the soak of Deployment {flip.server} is over, and is judged once spec.suspend is false"
    else:
        words = f"the counters of Deployment {flip.server} at the end of the soak are read; {flip.previous} still runs"
    return Verdict("Soaked", None, reason, f"{words}{_held(flip)}")


def superseded(server: str) -> Judgement:
    """Return the judgement on a soak that ends because a third revision starts in Deployment ``server``."""
    return _ended_early(f"Deployment {server} starts with another revision")


def previous_gone(flip: Flip) -> Judgement:
    """Return the judgement on a soak whose previous revision cannot come back any more."""
    return _ended_early(f"Deployment {flip.previous}, which was active before, is gone")


def no_replicas() -> Judgement:
    """Return the judgement on a soak of which the spec wants no server any more."""
    return _ended_early("spec.serving.replicas is 0")


def _ended_early(because: str) -> Judgement:
    return Judgement(Reason.SOAK_INCONCLUSIVE, f"the soak ended early, because {because}")


def unjudged(found: Judgement) -> Judgement:
    """Return the judgement on a revision that is undone: one without a verdict says so."""
    if found.reason is Reason.SOAK_FAILED:
        return found
    words = f"it was not judged, because {found.words}; spec.rollout.onInconclusive is Undo"
    return Judgement(Reason.SOAK_FAILED, words)


def soak_passed(flip: Flip, found: Judgement) -> str:
    """Return the words of SoakPassed."""
    return f"revision {flip.revision} in Deployment {flip.server}: {found.words}{_after_canary(flip)}"


def soak_failed(context: Context, flip: Flip, found: Judgement) -> str:
    """Return the words of SoakFailed, where the previous revision is active again."""
    return (
        f"{soak_passed(flip, found)}; Deployment {flip.previous} is active again, and this revision is not tried again"
        f" until the spec or the source changes, or you type: {context.retry_command}"
    )


def soak_inconclusive(flip: Flip, found: Judgement) -> str:
    """Return the words of SoakInconclusive; a revision that failed stays if the previous one does not answer."""
    words = f"{soak_passed(flip, found)}; it stays without a verdict"
    failed = found.reason is Reason.SOAK_FAILED
    return f"{words}, because Deployment {flip.previous} does not answer" if failed else words


def no_room(active: str, target: str) -> str:
    """Return the words of NoSpareGpu: no revision could come back at once, so there is no soak."""
    return (
        f"Deployment {active} had to make room for {target}, so nothing could come back at once; the new revision stays"
        " without a soak"
    )


def canary(context: Context, reason: Reason, flip: Flip, steps: Sequence[int], end: datetime, answers: bool) -> Verdict:
    """Return the condition of a canary that goes on.

    ``steps``: the shares of all steps, in percent. ``end``: when the present one is judged next. ``answers``: whether a
    pod of the revision is ready.
    """
    step = min(len(flip.steps), len(steps) - 1)
    if context.spec.suspend:
        until = "it waits, because spec.suspend is true"
    elif not answers:
        until = "none of its pods is ready, so it gets no request for now"
    else:
        until = f"it is judged at {end:%H:%M:%S} UTC" if context.now < end else "its counters are read"
    words = (
        f"step {step + 1} of {len(steps)}: Deployment {flip.server} gets {steps[step]} % of the requests to HTTPRoute"
        f" {context.name}; {until}{''.join(f'; {each}' for each in flip.steps)}{_held(flip)}"
    )
    return Verdict("Soaked", None, reason, words)


def step_passed(share: int, found: Judgement) -> str:
    """Return the words about a step that is over. ``share``: its percent of the requests."""
    return f"{share} %: {'passed' if found.reason is Reason.SOAK_PASSED else f'inconclusive, {found.words}'}"


def canary_failed(context: Context, flip: Flip, share: int, found: Judgement) -> str:
    """Return the words of SoakFailed of a revision that was no more than a canary. ``share``: its percent."""
    return (
        f"revision {flip.revision} in Deployment {flip.server}, with {share} % of the requests to HTTPRoute"
        f" {context.name}: {found.words}; Deployment {flip.previous} stays active; this revision gets no more of them,"
        f" and is not tried again until the spec or the source changes, or you type: {context.retry_command}"
    )


def canary_abandoned(flip: Flip) -> str:
    """Return the words about a canary whose revision is not the target any more."""
    return f"the canary of Deployment {flip.server} ended, because its revision is no longer the target"


def unread(when: str, trouble: Trouble | None, *, spoiled: bool) -> Judgement:
    """Return the judgement where counters could not be read. ``spoiled``: as `Judgement.spoiled`."""
    because = f": {trouble.message}" if trouble is not None else ""
    return Judgement(Reason.SOAK_INCONCLUSIVE, f"the servers' counters {when} were not read{because}", spoiled)


def restarted(pod: str, when: str, trouble: Trouble | None) -> Judgement:
    """Return the judgement on a revision whose server ended by itself."""
    because = f": {trouble.message}" if trouble is not None else ""
    words = f"tritonserver in pod {pod} ended {when}, and was started again{because}"
    return Judgement(Reason.SOAK_FAILED, words)


def both_restarted(pod: str, when: str, other: str) -> Judgement:
    """Return the judgement where servers of both revisions ended, as with their node. ``other``: a Deployment."""
    words = f"tritonserver in pod {pod} ended {when}, and so did one of Deployment {other}"
    words += "; look for what became of the node"
    return Judgement(Reason.SOAK_INCONCLUSIVE, words, spoiled=True)


def few_requests(whole: Traffic, least: int) -> Judgement:
    """Return the judgement on a revision that answered fewer requests than can be judged."""
    return Judgement(Reason.SOAK_INCONCLUSIVE, f"it answered {whole.requests} requests, and minRequests is {least}")


def many_errors(errors: str, most: float, previous: Traffic | None) -> Judgement:
    """Return the judgement on a revision that failed too many requests. ``most``: percent."""
    return Judgement(Reason.SOAK_FAILED, f"{errors}, and maxErrorPercent is {most:g}; {_before(previous)}")


def latency_not_compared(errors: str, previous: Traffic | None) -> Judgement:
    """Return the judgement where the previous revision answered too little for a comparison."""
    words = f"{errors}; the mean latency is not compared: {_before(previous)}"
    return Judgement(Reason.SOAK_INCONCLUSIVE, words)


def much_slower(latency: str, slower: float, most: int) -> Judgement:
    """Return the judgement on a revision that is too slow. ``slower``, ``most``: percent."""
    return Judgement(Reason.SOAK_FAILED, f"{latency}: {_percent(slower)} more, and maxLatencyPercent is {most}")


def did_well(errors: str, latency: str) -> Judgement:
    """Return the judgement on a revision that did as well as the previous one."""
    return Judgement(Reason.SOAK_PASSED, f"{errors}; {latency}")


def errors(where: str, traffic: Traffic) -> str:
    """Return the words about the requests that failed. ``where``: of which pods."""
    return f"{_percent(traffic.failed_percent)} of {traffic.requests} requests failed in {where}"


def latency(where: str, traffic: Traffic, previous: Traffic, at: str) -> str:
    """Return the words about the mean latency. ``where``: of which pods. ``at``: when the previous one had its own."""
    return f"the mean latency is {_milliseconds(traffic)} in {where}, and was {_milliseconds(previous)} {at}"


def _before(previous: Traffic | None) -> str:
    if previous is None:
        return "the requests to the previous revision are not known"
    failed = f"{_percent(previous.failed_percent)} failed"
    return f"the previous revision answered {previous.requests} requests, of which {failed}"


def _percent(value: float) -> str:
    return f"{value:.3g} %"


def _milliseconds(traffic: Traffic) -> str:
    return f"{traffic.latency / 1000:.3g} ms"


def _held(flip: Flip) -> str:
    """Words about why there is no verdict, and what a person may do; empty: its time is not over."""
    if not flip.held_since:
        return ""
    choice = "it is judged as more requests come, or set spec.rollout.onInconclusive to Continue or Undo"
    return f"; there is no verdict yet, because {flip.message}; {choice}"


def _after_canary(flip: Flip) -> str:
    """Words about the canary before the move; empty if there was none."""
    return f"; its canary before that: {', '.join(flip.steps)}" if flip.steps else ""
