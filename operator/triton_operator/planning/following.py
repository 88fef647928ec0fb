"""Follow the source: what the looks found, and what becomes of it. Pure.

The facts are gathered here, the table answers (`stages/follow_decision.py`), and the answer is recorded. The pass after
it takes the version that is recorded as taken, so a pass that is cut off between two writes repeats the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from triton_converters.contract.look import LookResult
from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_operator import names
from triton_operator.api.status import timestamp
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.look import answered_request, due_at, look
from triton_operator.jobs.run import Run
from triton_operator.jobs.source import followed, serving_version, unfollowed_source
from triton_operator.observed.following import Following, FullComparison, RefusedVersion
from triton_operator.planning.conditions import Outline
from triton_operator.rollout.trial import Trial
from triton_operator.stages.follow_decision import Answer, FollowFacts, Offer, answer
from triton_operator.stages.progress import Progress
from triton_operator.stages.same_graph import ranking_basis, tried_alone, winner

ENDS_BY_ITSELF = of_kinds(Kind.GOES_ON, Kind.WAITS, Kind.TRIAL)
"""Reasons of work on a version that a newer one does not interrupt."""
REFUSALS = of_kinds(Kind.FILES, Kind.SPEC, Kind.RETRY, Kind.EITHER)
"""Reasons of a version that did not pass. All others are of what is around it, and pass by themselves."""
RUNNING_SECONDS = 10.0
"""The pause before the next pass while a look runs, or waits for room: it takes some seconds, and no event tells that
its pod waits too long for a node, or that another object's look has ended."""


@dataclass(frozen=True)
class Followed:
    """The source after a pass has looked at it."""

    known: Following
    """What is known of it from this pass on."""
    outline: Outline
    """What the conditions are made of, with what they tell of the source."""
    effects: Effects
    again_after: float | None = None
    """Seconds until the next look; None: the source is not followed."""


def follow(context: Context, progress: Progress, outline: Outline, soak: Trial) -> Followed:
    """Return what this pass knows of the source, and have its server asked if a look is due."""
    before = followed(context)
    is_wanted = context.spec.rollout.revision is None and not context.spec.suspend
    may_look = is_wanted and outline.decisive.reason is not Reason.NOT_ALLOWED
    job_run = look(context) if may_look else None
    known = _with_comparison(context, _after_look(context, before, job_run), progress)
    known = _with_refused(context, known, progress, outline)
    facts = _facts(context, known, busy=_is_busy(progress, outline, soak))
    answered = answer(facts)
    newer = _newer(context, known, answered, facts)
    facts_with_newer = replace(outline.facts, newer=newer is not None)
    outline = replace(
        outline,
        facts=facts_with_newer,
        newer=newer,
        worked_on=_worked_on(context, known),
        looks_failed=_looks_failed(known),
    )
    if answered is Answer.TAKE:
        assert known.latest is not None
        only = "" if facts.first else winner(context, known, known.latest.version)
        known = replace(known, taken=known.latest, is_asked=facts.first, only=only)
    # Until the first look has ended, there is nothing to record but that what is known is of another source.
    recorded = context.observed.following
    is_new = known.looked_at or (recorded is not None and recorded.source != known.source)
    effects = Effects(following=known if is_new else None)
    is_running = known.looked_at == before.looked_at and job_run is not None
    if job_run is not None and is_running:
        effects += Effects(job_run.effects.objects, jobs=job_run.effects.jobs)
    due = due_at(context, known) if may_look else None
    if due is None:
        return Followed(known, outline, effects)
    seconds = RUNNING_SECONDS if is_running else max(0.0, (due - context.now).total_seconds())
    return Followed(known, outline, effects, seconds)


def _after_look(context: Context, known: Following, job_run: Run[LookResult] | None) -> Following:
    """Return what is known once the look has ended; as long as it has not, what was known."""
    if job_run is not None and job_run.result is not None:
        known = known.after_answer(job_run.result, timestamp(context.now))
    elif job_run is not None and (failure := job_run.failure) is not None:
        known = known.after_failure(failure.reason, failure.message, timestamp(context.now))
    else:
        return known
    return replace(known, request=answered_request(context), retry=context.triton_deployment.retry)


def _with_refused(context: Context, known: Following, progress: Progress, outline: Outline) -> Following:
    """Remember that the version that was taken did not pass, once nothing more is tried with it.

    Where one candidate alone was tried, the others are next.
    """
    taken, decisive = known.taken, outline.decisive
    if taken is None or progress.is_complete or not progress.stalled or progress.again_after is not None:
        return known
    is_served, by = taken.version == serving_version(context), _refusal_basis(context)
    if is_served or decisive.reason not in REFUSALS or known.refusal(taken.version, by) is not None:
        return known
    if tried_alone(context):
        return replace(known, only="")
    at = timestamp(context.now)
    return known.with_refused(RefusedVersion(taken.version, by, decisive.reason, decisive.message, at))


def _refusal_basis(context: Context) -> str:
    """Return a digest of all but the version that decides whether it passes."""
    owner = context.triton_deployment
    return names.digest([owner.goal_digest, owner.retry, context.pins.model_dump(mode="json")], 16)


def _with_comparison(context: Context, known: Following, progress: Progress) -> Following:
    """Remember when all candidates of a version were tried last."""
    last, taken, by = known.compared, known.taken, ranking_basis(context)
    if taken is None or not progress.is_complete or tried_alone(context):
        return known
    if last is not None and (last.version, last.basis) == (taken.version, by):
        return known
    return replace(known, only="", compared=FullComparison(taken.version, by, timestamp(context.now)))


def _is_busy(progress: Progress, outline: Outline, soak: Trial) -> bool:
    """Whether work on the version that was taken goes on, and ends by itself."""
    if progress.is_complete:
        return soak.goes_on and soak.condition is not None and soak.condition.reason in ENDS_BY_ITSELF
    return not progress.stalled and outline.decisive.reason in ENDS_BY_ITSELF


def _facts(context: Context, known: Following, *, busy: bool) -> FollowFacts:
    return FollowFacts(
        offer=_offer(context, known),
        first=_is_first(context, known, busy=busy),
        settled=known.is_settled,
        only_notifies=context.spec.source.on_change == "Notify",
        busy=busy,
    )


def _offer(context: Context, known: Following) -> Offer:
    if known.latest is None or context.spec.source.interval is None:
        return Offer.NOTHING
    if known.taken is not None and known.taken.version == known.latest.version:
        return Offer.TAKEN
    if known.refusal(known.latest.version, _refusal_basis(context)) is not None:
        return Offer.REFUSED
    return Offer.SERVING if known.latest.version == serving_version(context) else Offer.OTHER


def _is_first(context: Context, known: Following, *, busy: bool) -> bool:
    """Return `FollowFacts.first`."""
    if known.taken is not None:
        return context.active_server is None and not busy
    published = unfollowed_source(context)
    # What a server calls a version says that it is the one that was read before the source was followed.
    return published is None or (known.latest is not None and published.resolved == known.latest.version)


def _worked_on(context: Context, known: Following) -> str:
    """Return `Outline.worked_on`."""
    if known.taken is None or known.taken.version == serving_version(context):
        return ""
    return f"{known.taken.label}, found at {known.taken.found_at}"


def _looks_failed(known: Following) -> str:
    """Return `Outline.looks_failed`."""
    failed = known.failed
    return f"looks have failed since {failed.since}: {failed.message}" if failed is not None else ""


def _newer(context: Context, known: Following, answered: Answer, facts: FollowFacts) -> Statement | None:
    """Return what UpToDate says if the version that is taken serves; None: that nothing newer is wanted."""
    if known.latest is None or context.spec.rollout.revision is not None:
        return None
    reason, words = _WORDS.get(answered, (Reason.READY, ""))
    if answered is Answer.TAKE and facts.first:
        words = ""
    refusal = known.refusal(known.latest.version, _refusal_basis(context))
    if answered is Answer.REFUSE and refusal is not None:
        reason = refusal.reason
        words = f"was refused at {refusal.at}, and nothing that decided so has changed: {refusal.message}"
    failed, failure = known.failed, _looks_failed(known)
    if words:
        message = f"{known.latest.label}, found at {known.latest.found_at}, {words}"
        return Statement("UpToDate", False, reason, "; ".join(filter(None, (message, failure))))
    if failed is not None:
        serves = f"it is not known what is newer than {known.latest.label}"
        return Statement("UpToDate", None, failed.reason, f"{failure}; {serves}")
    return None


_WORDS: Mapping[Answer, tuple[Reason, str]] = {
    Answer.NOTIFY: (
        Reason.NEWER_VERSION,
        "does not serve, because spec.source.onChange is Notify; to verify and serve it, set that to Serve",
    ),
    Answer.LOOK_AGAIN: (Reason.VERSION_UNSETTLED, "is taken once another look finds it too"),
    Answer.TAKE: (Reason.RUNNING, "is taken, and serves if it passes"),
}
"""What becomes of the latest version: the reason, and words that follow its name."""
