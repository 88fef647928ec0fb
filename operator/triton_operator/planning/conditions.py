"""Makes conditions from what the stages state, and Events from the difference of two statuses. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import (
    ASKED_FOR,
    NOTICES,
    RISKS,
    Condition,
    ConditionType,
    Images,
    TritonDeploymentStatus,
)
from triton_operator.candidates import vulnerabilities
from triton_operator.candidates.defaults import default_candidates
from triton_operator.context import Context
from triton_operator.effects import Statement, conditions_of
from triton_operator.planning.pins import differing
from triton_operator.planning.summary import (
    NEWEST,
    SUMMARY,
    Activity,
    Standing,
    SummaryFacts,
    activity,
    holds,
    standing,
)
from triton_operator.resources.claim import kept
from triton_operator.rollout.active import is_met
from triton_operator.rollout.available import active_availability
from triton_operator.stages.progress import Progress
from triton_operator.stages.reference import Referred

UNDECIDED = {
    Reason.PENDING,
    Reason.WAITING,
    Reason.RUNNING,
    Reason.QUEUED,
    Reason.SUSPENDED,
    Reason.SEARCHING,
    Reason.AWAITING_APPROVAL,
}
"""Reasons of a stage that may still go either way."""
PAUSED = {Reason.SUSPENDED, Reason.AWAITING_APPROVAL}
"""Reasons of an object that waits for its user, without anything being wrong."""
QUIET = UNDECIDED | {Reason.ROLLING_OUT, Reason.PROGRESSING, Reason.SCALING_PAUSED, Reason.CANARY, Reason.SOAKING}
"""Reasons of work that goes on; they cause no Warning."""

CLEAR = Statement("Stalled", False, Reason.NO_STALL, "nothing is in the way")
"""The condition of an object that nothing stops."""
NAMED_NEIGHBOURS = 3
"""How many other objects on the claim a message names: enough to find them, and it stays one line."""
STAGES: tuple[ConditionType, ...] = tuple(
    each for each in get_args(ConditionType) if each not in (*SUMMARY, *NOTICES, *ASKED_FOR)
)
"""The conditions of the stages, in the order of the flow."""


@dataclass(frozen=True)
class Outline:
    """What all conditions are made of."""

    stages: Sequence[Statement]
    """The conditions of the stages, also of those that are not reached."""
    facts: SummaryFacts
    """What decides the conditions that summarize."""


def outline(context: Context, progress: Progress) -> Outline:
    """Return what the conditions are made of."""
    known = {condition.type: condition for condition in progress.conditions}
    stages = [_undecided(known.get(kind) or _not_reached(context, kind)) for kind in STAGES]
    is_available = bool(_available(stages).status)
    facts = SummaryFacts(
        complete=progress.is_complete and is_available,
        rolled_back=context.spec.rollout.revision is not None,
        met=is_met(context),
        available=is_available,
        soaks=progress.soaks is not None,
        stalled=progress.stalled,
        paused=_decisive(progress, stages).reason in PAUSED,
    )
    return Outline(stages, facts)


def conditions(
    context: Context, progress: Progress, known: Outline, extras: Iterable[Statement], new_images: Images | None
) -> list[Condition]:
    """All conditions as observed now: those that summarize, the stages' in order, notices, and ``extras``.

    ``new_images``: what the status tells of the installation's images.
    """
    summary = _summary(context, progress, known)
    told = (*summary, *known.stages, *_notices(context, progress, new_images), *extras)
    triton_deployment = context.triton_deployment
    return conditions_of(told, triton_deployment.status.conditions, triton_deployment.generation, context.now)


def _undecided(condition: Statement) -> Statement:
    """Turn a stage's condition to Unknown while the stage goes on. False means failed, in trouble or not available."""
    return (
        replace(condition, status=None)
        if condition.reason in UNDECIDED and condition.type != "Available"
        else condition
    )


def _not_reached(context: Context, kind: ConditionType) -> Statement:
    if kind == "Available" and context.active_server is not None:
        return active_availability(context)
    return Statement(kind, None, Reason.WAITING, "an earlier stage has to finish first")


def _notices(context: Context, progress: Progress, new_images: Images | None) -> Iterator[Statement]:
    """What is only there while it holds."""
    yield from _risks(context)
    yield from _rehearsed(progress)
    yield from _news(context)
    yield from _images(context, new_images)


def _risks(context: Context) -> Iterator[Statement]:
    """What the user should know and may accept."""
    vulnerable = next(filter(None, map(vulnerabilities.warning, _server_images(context))), None)
    if vulnerable is not None:
        yield Statement("ServerVulnerable", True, Reason.KNOWN_VULNERABILITIES, vulnerable)
    others = context.observed.neighbours
    if others:
        # No number: it would change the statuses of all whenever one comes or goes.
        named = ", ".join(others[:NAMED_NEIGHBOURS]) + (" and others" if len(others) > NAMED_NEIGHBOURS else "")
        message = (
            f"claim {context.claim_name} is also used by {named}, so these TritonDeployments have to trust each other:"
            " one can fill the claim of all; if they should not, let each have its own claim"
        )
        yield Statement("ClaimShared", True, Reason.SHARED_CLAIM, message)


def _server_images(context: Context) -> Iterator[str]:
    """The image of the active revision's server, as it was measured, and that of the next one."""
    measured = context.triton_deployment.status.performance
    if context.active_server is not None and measured is not None and measured.environment is not None:
        yield measured.environment.image
    yield context.images.server


def _rehearsed(progress: Progress) -> Iterator[Statement]:
    """What did not run as it would on a GPU."""
    if not isinstance(progress, Referred):
        return
    parts = ["the reference"] if progress.dump.result.rehearsed else []
    parts += [each.name for each in progress.attempts if each.conversion is not None and each.conversion.rehearsed]
    if parts:
        message = (
            f"the user's code asked for a GPU and ran on the CPU ({', '.join(parts)}), because spec.gpu is not set;"
            " to serve it on a GPU, set spec.gpu: everything is then converted and measured again"
        )
        yield Statement("Rehearsed", True, Reason.REHEARSED, message)


def _news(context: Context) -> Iterator[Statement]:
    """What the user may take, while the operator keeps to what it chose."""
    named = {model.name: model for model in context.spec.models}
    for chosen in context.resolved.models if context.resolved else ():
        model = named.get(chosen.name)
        if model is None or model.is_sought or not chosen.candidates:
            continue
        offered = default_candidates(context.spec, model, context.images)
        added = [each.name for each in offered if each not in chosen.candidates]
        taken = ", ".join(each.name for each in chosen.candidates)
        if added:
            message = (
                f"this version of the operator would also try {', '.join(added)} for model {chosen.name}, but keeps to"
                f" {taken}; to try others, list all candidates in spec.models[].candidates"
            )
            yield Statement("NewCandidatesAvailable", True, Reason.NEW_CANDIDATES, message)
            return


def _images(context: Context, found: Images | None) -> Iterator[Statement]:
    """Other images that the installation has, such as a server whose faults are mended. ``found``: they; None: none."""
    if found is None:
        return
    fields = differing(context.pins, found, context.spec.serving.image)
    if fields:
        message = (
            f"the installation has other images than this object keeps ({', '.join(fields)}; status.newImages has all);"
            f" to have every model converted and verified with them, while the active revision serves, type: kubectl"
            f" triton update-images {context.name} --namespace {context.namespace}"
        )
    else:
        message = (
            "the active revision has other images than the installation, and the next one, which does not serve yet,"
            " has the installation's (status.newImages)"
        )
    yield Statement("NewImagesAvailable", True, Reason.NEW_IMAGES, message)


def _summary(context: Context, progress: Progress, known: Outline) -> list[Statement]:
    """The conditions that summarize: Ready, Reconciling and Stalled as kstatus reads them, and UpToDate."""
    stages, facts, soaks = known.stages, known.facts, progress.soaks
    decisive = _decisive(progress, stages)
    stands, doing, says = standing(facts), activity(facts), holds(facts)
    waits = soaks if doing is Activity.SOAKS and soaks is not None else decisive
    reconciling = Statement("Reconciling", says["Reconciling"], *_activity_words(doing, waits))
    stalled = replace(decisive, type="Stalled", status=True) if says["Stalled"] else CLEAR
    if stands in NEWEST:
        pair = _serves(context, _newest(context, stands, soaks))
    elif stands is Standing.SERVES_OLDER:
        pair = _serves_on(context, decisive)
    else:
        lacks = _available(stages) if stands is Standing.UNAVAILABLE else decisive
        pair = (replace(lacks, type=kind, status=False) for kind in ("Ready", "UpToDate"))
    return [*pair, reconciling, stalled]


def _available(stages: Sequence[Statement]) -> Statement:
    return next(each for each in stages if each.type == "Available")


def _decisive(progress: Progress, stages: Sequence[Statement]) -> Statement:
    """What the target waits for or failed at: the first stage that is not done, or what the roll-out says itself."""
    if progress.blocking is not None:
        return progress.blocking
    unfinished = (each for each in stages if not each.status)
    moves = Statement("Available", False, Reason.ROLLING_OUT, "the Service is about to point to the target revision")
    return moves if progress.is_rolled_out else next(unfinished)


def _activity_words(doing: Activity, waits: Statement) -> tuple[Reason, str]:
    """Reason and message of Reconciling. ``waits``: what is waited for."""
    if doing is Activity.NONE:
        return Reason.READY, "nothing is left to do"
    if doing is Activity.STALLED:
        return waits.reason, "nothing more is tried until something changes"
    return (waits.reason if doing is Activity.PAUSED else Reason.PROGRESSING), waits.message


def _serves(context: Context, newest: Statement) -> Iterator[Statement]:
    """Ready and UpToDate once all that is desired serves. ``newest``: the latter."""
    words = "; ".join(filter(None, (f"{context.name} serves, verified and measured", kept(context))))
    yield Statement("Ready", True, Reason.READY, words)
    yield newest


def _newest(context: Context, stands: Standing, soaks: Statement | None) -> Statement:
    """The condition UpToDate of what serves as the spec asks. ``soaks``: what its soak says; None: it has none."""
    if stands is Standing.ROLLED_BACK:
        words = (
            f"spec.rollout.revision names revision {context.active_revision}, so nothing newer is looked for, and no"
            " other edit is served; remove the field to serve what the rest of the spec asks for"
        )
        return Statement("UpToDate", False, Reason.ROLLED_BACK, words)
    if stands is Standing.SOAKED and soaks is not None:
        return replace(soaks, type="UpToDate", status=False)
    return Statement("UpToDate", True, Reason.READY, "nothing newer is wanted than the active revision")


def _serves_on(context: Context, newer: Statement) -> Iterator[Statement]:
    """Ready and UpToDate while the spec is met, and something newer is worked on, waits or failed.

    The reason of Reconciling, which is False then, tells whether work goes on.
    """
    words = f"revision {context.active_revision} serves, as the spec asks; UpToDate tells what is newer"
    yield Statement("Ready", True, Reason.READY, words)
    yield replace(newer, type="UpToDate", status=False)


def transitions(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """Type, reason, message and condition of an Event for each condition, candidate and revision that changed."""
    yield from _switch(old, new)
    known = {each.type: (each.status, each.reason) for each in old.conditions}
    stays_ready = "UpToDate" in known and all(_is_ready(status) for status in (old, new))
    for each in new.conditions:
        if not _is_told(new, each, stays_ready):
            continue
        if known.get(each.type) == (each.status, each.reason) or each.reason in (Reason.WAITING, Reason.PENDING):
            continue
        bad = each.type == "Stalled" or (each.status != "True" and each.reason not in QUIET)
        bad |= each.type in RISKS or each.reason == Reason.PERFORMANCE_REGRESSED
        yield "Warning" if bad else "Normal", each.reason, f"{each.type}: {each.message}", each.type
    yield from _of_candidates(old, new)
    yield from _start(old, new)


def _is_ready(status: TritonDeploymentStatus) -> bool:
    return any((each.type, each.status) == ("Ready", "True") for each in status.conditions)


def _is_told(new: TritonDeploymentStatus, condition: Condition, stays_ready: bool) -> bool:
    """Whether an Event tells of a condition, if it has changed. ``stays_ready``: whether Ready stays True."""
    if condition.type == "UpToDate":
        stopped = any((each.type, each.reason) == ("Reconciling", condition.reason) for each in new.conditions)
        failed = condition.reason not in QUIET and stopped
        return stays_ready and (condition.status == "True" or failed)
    # A stage's condition says why a summary does not hold.
    return condition.type not in SUMMARY or (condition.status == "True" and condition.type != "Reconciling")


def _of_candidates(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """The candidates that failed or were skipped."""
    states = {each.name: each.state for each in old.candidates}
    for candidate in new.candidates:
        if candidate.state in ("Failed", "Skipped") and states.get(candidate.name) != candidate.state:
            kind = "Warning" if candidate.state == "Failed" else "Normal"
            yield kind, candidate.reason or "", f"candidate {candidate.name}: {candidate.message}", ""


def _start(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """The start of a target revision's server, of which no condition tells while another revision serves."""
    target, active = new.target, new.active
    if target is not None and active is not None and target != old.target:
        message = (
            f"Available: revision {target.revision} (candidate {target.candidate}) starts; revision {active.revision}"
            " serves until it was measured"
        )
        yield "Normal", Reason.ROLLING_OUT, message, ""


def _switch(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """The change of the active revision, which the condition Available outlives."""
    before, after = old.active, new.active
    if before is not None and after is not None and before.revision != after.revision:
        message = (
            f"Available: revision {after.revision} (candidate {after.candidate}) replaces revision {before.revision},"
            " and is the active one"
        )
        yield "Normal", Reason.AVAILABLE, message, ""
