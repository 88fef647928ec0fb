"""Makes conditions from what the stages state, and Events from the difference of two statuses. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_operator.api.status import (
    ASKED_FOR,
    NOTICES,
    PAUSED,
    RISKS,
    Condition,
    ConditionType,
    Images,
    TritonDeploymentStatus,
)
from triton_operator.candidates.defaults import default_candidates, spare_candidates
from triton_operator.context import Context
from triton_operator.effects import Statement, conditions_of
from triton_operator.planning.pins import differing_fields
from triton_operator.planning.risks import risk_notices
from triton_operator.planning.summary import (
    NEWEST,
    SUMMARY,
    Activity,
    Standing,
    SummaryFacts,
    activity,
    standing,
    summary_truths,
)
from triton_operator.resources.claim import kept
from triton_operator.rollout.active import is_met
from triton_operator.rollout.available import active_availability
from triton_operator.stages.progress import Progress
from triton_operator.stages.publish import published_condition
from triton_operator.stages.reference import Referred

UNDECIDED = of_kinds(Kind.GOES_ON, Kind.WAITS, Kind.TRIAL, Kind.PAUSED)
"""Reasons of work that may still go either way; they cause no Warning."""

CLEAR = Statement("Stalled", False, Reason.NO_STALL, "nothing is in the way")
"""The condition of an object that nothing stops."""
STAGES: tuple[ConditionType, ...] = tuple(
    each for each in get_args(ConditionType) if each not in (*SUMMARY, *NOTICES, *ASKED_FOR)
)
"""The conditions of the stages, in the order of the flow."""
OF_SERVERS: tuple[ConditionType, ...] = ("Available", "PerformanceMeasured")
"""The stages of an object with servers alone; without them, Published is a stage in their place."""


@dataclass(frozen=True)
class Outline:
    """The statements of the stages, and the facts from which the conditions that summarize follow."""

    stages: Sequence[Statement]
    """The conditions of the stages, also of those that are not reached."""
    facts: SummaryFacts
    """The facts that decide Ready, UpToDate, Reconciling and Stalled."""
    decisive: Statement
    """What the target waits for or failed at."""
    newer: Statement | None = None
    """The condition UpToDate of an object that has all that was taken of its source; None: nothing newer is known."""
    worked_on: str = ""
    """The version of the source that is worked on, in words; empty: it serves, or the source is not followed."""
    looks_failed: str = ""
    """Since when looks have failed, and why; empty: the last one has not."""


def outline_of(context: Context, progress: Progress) -> Outline:
    """Return what the conditions are made of."""
    known = {condition.type: condition for condition in progress.conditions}
    published = published_condition(context, progress)
    kinds, serves = STAGES, context.spec.serving.serves
    if not serves:
        kinds = tuple(each for each in STAGES if each not in OF_SERVERS)
    if published is not None and not serves:
        kinds, known = (*kinds, "Published"), known | {"Published": published}
    unreached = "an earlier stage failed" if progress.stalled else "an earlier stage has to finish first"
    stages = [unknown_while_undecided(known.get(kind) or _unreached_stage(context, kind, unreached)) for kind in kinds]
    is_available = not serves or bool(_available_statement(stages).status)
    decisive = _decisive_statement(progress, stages)
    facts = SummaryFacts(
        complete=progress.is_complete and is_available,
        rolled_back=context.spec.rollout.revision is not None,
        met=is_met(context),
        available=is_available,
        soaks=progress.soaks is not None,
        stalled=progress.stalled or _gets_no_pod(context, decisive),
        paused=decisive.reason in PAUSED,
    )
    return Outline(stages, facts, decisive)


def _gets_no_pod(context: Context, decisive: Statement) -> bool:
    """Whether the object waits for pods that no time lets in, and no other Job of it goes on."""
    pending = (each.pending for each in context.observed.jobs.values() if each.active)
    return decisive.reason is Reason.POD_REFUSED and all(
        each is not None and each.reason is Reason.POD_REFUSED for each in pending
    )


def conditions(
    context: Context, progress: Progress, outline: Outline, extras: Iterable[Statement], new_images: Images | None
) -> list[Condition]:
    """All conditions as observed now: those that summarize, the stages' in order, notices, and ``extras``.

    ``new_images``: what the status tells of the installation's images.
    """
    summary = _summary(context, progress, outline)
    statements = (*summary, *outline.stages, *_notices(context, progress, new_images), *extras)
    triton_deployment = context.triton_deployment
    return conditions_of(statements, triton_deployment.status.conditions, triton_deployment.generation, context.now)


def unknown_while_undecided(condition: Statement) -> Statement:
    """Turn a stage's condition to Unknown while the stage goes on. False means failed, in trouble or not available."""
    return (
        replace(condition, status=None)
        if condition.reason in UNDECIDED and condition.type != "Available"
        else condition
    )


def _unreached_stage(context: Context, kind: ConditionType, message: str) -> Statement:
    if kind == "Available" and context.active_server is not None:
        return active_availability(context)
    return Statement(kind, None, Reason.WAITING, message)


def _notices(context: Context, progress: Progress, new_images: Images | None) -> Iterator[Statement]:
    """The conditions that are only in the status while they hold."""
    yield from risk_notices(context)
    if context.settings.machine:
        on_gpu = context.spec.gpu_count > 0
        backends = "PyTorch backend is a stand-in" if on_gpu else "ONNX and PyTorch backends are stand-ins"
        own = ", in which your own PyTorch computes on the GPU" if on_gpu else ""
        message = (
            f"checked and measured by processes of {context.settings.machine}, without a cluster. Nothing enforces"
            f" limits there, and the server's {backends} for NVIDIA's{own}: compare the figures with those of the same"
            " machine only"
        )
        yield Statement("Local", True, Reason.LOCAL, message)
    yield from _rehearsal_notice(progress)
    yield from _new_candidates_notice(context)
    yield from _new_images_notice(context, new_images)


def _rehearsal_notice(progress: Progress) -> Iterator[Statement]:
    """The notice that the user's code ran on the CPU although it asked for a GPU."""
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


def _new_candidates_notice(context: Context) -> Iterator[Statement]:
    """The notice that this operator would choose further candidates, while it keeps to those that were chosen."""
    models_by_name = {model.name: model for model in context.spec.models}
    for choice in context.resolved.models if context.resolved else ():
        model = models_by_name.get(choice.name)
        if model is None or model.is_sought or not choice.candidates:
            continue
        defaults = default_candidates(context.spec, model, context.images)
        new_names = [each.name for each in defaults if each not in choice.candidates]
        kept_names = ", ".join(each.name for each in choice.candidates)
        if new_names and choice.candidates != list(spare_candidates(context.spec, model, context.images)):
            message = (
                f"this version of the operator would also try {', '.join(new_names)} for model {choice.name}, but keeps"
                f" to {kept_names}; to try others, list all candidates in spec.models[].candidates"
            )
            yield Statement("NewCandidatesAvailable", True, Reason.NEW_CANDIDATES, message)
            return


def _new_images_notice(context: Context, new_images: Images | None) -> Iterator[Statement]:
    """The notice that the installation has other images, such as a server whose faults are mended."""
    if new_images is None:
        return
    fields = differing_fields(context.pins, new_images, context.spec.serving.image)
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


def _summary(context: Context, progress: Progress, outline: Outline) -> list[Statement]:
    """The conditions that summarize: Ready, Reconciling and Stalled as kstatus reads them, and UpToDate."""
    stages, facts, soaks = outline.stages, outline.facts, progress.soaks
    decisive = outline.decisive
    current_standing = standing(facts)
    current_activity = activity(facts)
    truths = summary_truths(facts)
    obstacle = soaks if current_activity is Activity.SOAKS and soaks is not None else decisive
    reconciling = Statement("Reconciling", truths["Reconciling"], *_activity_reason(current_activity, obstacle))
    stalled = replace(decisive, type="Stalled", status=True) if truths["Stalled"] else CLEAR
    if current_standing in NEWEST:
        up_to_date = _up_to_date_condition(context, current_standing, soaks, outline.newer)
        pair = _conditions_when_up_to_date(context, up_to_date)
    elif current_standing is Standing.SERVES_OLDER:
        words = ": ".join(filter(None, (outline.worked_on, decisive.message)))
        message = "; ".join(filter(None, (words, outline.looks_failed)))
        pair = _conditions_while_older_serves(context, replace(decisive, message=message))
    else:
        unmet = _available_statement(stages) if current_standing is Standing.UNAVAILABLE else decisive
        pair = (replace(unmet, type=kind, status=False) for kind in ("Ready", "UpToDate"))
    return [*pair, reconciling, stalled]


def _available_statement(stages: Sequence[Statement]) -> Statement:
    return next(each for each in stages if each.type == "Available")


def _decisive_statement(progress: Progress, stages: Sequence[Statement]) -> Statement:
    """What the target waits for or failed at: the first stage that is not done, or what the roll-out says itself."""
    if progress.blocking is not None:
        return progress.blocking
    unfinished = (each for each in stages if not each.status)
    message = "the Service is about to point to the target revision"
    move = Statement("Available", False, Reason.ROLLING_OUT, message)
    return move if progress.is_rolled_out else next(unfinished, stages[-1])


def _activity_reason(current_activity: Activity, obstacle: Statement) -> tuple[Reason, str]:
    """Reason and message of Reconciling. ``obstacle``: the condition that the object waits for."""
    if current_activity is Activity.NONE:
        return Reason.READY, "nothing is left to do"
    if current_activity is Activity.STALLED:
        return obstacle.reason, "nothing more is tried until something changes"
    return (obstacle.reason if current_activity is Activity.PAUSED else Reason.PROGRESSING), obstacle.message


def _conditions_when_up_to_date(context: Context, up_to_date: Statement) -> Iterator[Statement]:
    """Ready and UpToDate once all that is desired serves. ``up_to_date``: the condition UpToDate."""
    outcome = f"{context.name} serves" if context.spec.serving.serves else f"revision {context.active_revision} passed"
    message = "; ".join(filter(None, (f"{outcome}, verified and measured", kept(context))))
    yield Statement("Ready", True, Reason.READY, message)
    yield up_to_date


def _up_to_date_condition(
    context: Context, current_standing: Standing, soak_statement: Statement | None, newer: Statement | None
) -> Statement:
    """The condition UpToDate while all that is desired serves.

    ``soak_statement``: its soak's; None: it has no soak. ``newer``: what is said of a newer version, if it is behind.
    """
    if current_standing is Standing.ROLLED_BACK:
        message = (
            f"spec.rollout.revision names revision {context.active_revision}, so nothing newer is looked for, and no"
            " other edit is served; remove the field to serve what the rest of the spec asks for"
        )
        return Statement("UpToDate", False, Reason.ROLLED_BACK, message)
    if current_standing is Standing.SOAKED and soak_statement is not None:
        return replace(soak_statement, type="UpToDate", status=False)
    if current_standing is Standing.BEHIND and newer is not None:
        return newer
    return Statement("UpToDate", True, Reason.READY, "nothing newer is wanted than the active revision")


def _conditions_while_older_serves(context: Context, obstacle: Statement) -> Iterator[Statement]:
    """Ready and UpToDate while the spec is met, and something newer is worked on, waits or failed.

    The reason of Reconciling, which is False then, tells whether work goes on.
    """
    verb = "serves" if context.spec.serving.serves else "passed"
    message = f"revision {context.active_revision} {verb}, as the spec asks; UpToDate tells what is newer"
    yield Statement("Ready", True, Reason.READY, message)
    yield replace(obstacle, type="UpToDate", status=False)


def event_fields(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """Type, reason, message and condition of the Events about conditions, candidates and revisions that changed."""
    yield from _newer_version_event(old, new)
    yield from _active_change_event(old, new)
    old_states = {each.type: (each.status, each.reason) for each in old.conditions}
    stays_ready = "UpToDate" in old_states and all(_is_ready(status) for status in (old, new))
    for each in new.conditions:
        if not _has_event(new, each, stays_ready):
            continue
        if old_states.get(each.type) == (each.status, each.reason) or each.reason == Reason.WAITING:
            continue
        is_warning = each.type == "Stalled" or (each.status != "True" and each.reason not in UNDECIDED)
        is_warning |= each.type in RISKS or each.reason == Reason.PERFORMANCE_REGRESSED
        yield "Warning" if is_warning else "Normal", each.reason, f"{each.type}: {each.message}", each.type
    yield from _candidate_events(old, new)
    yield from _target_start_event(old, new)


def _is_ready(status: TritonDeploymentStatus) -> bool:
    return any((each.type, each.status) == ("Ready", "True") for each in status.conditions)


def _has_event(new: TritonDeploymentStatus, condition: Condition, stays_ready: bool) -> bool:
    """Whether an Event tells of a condition, if it has changed. ``stays_ready``: whether Ready stays True."""
    if condition.type == "UpToDate":
        is_stopped = any((each.type, each.reason) == ("Reconciling", condition.reason) for each in new.conditions)
        has_failed = condition.reason not in UNDECIDED and is_stopped
        return stays_ready and (condition.status in ("True", "Unknown") or has_failed)
    # A stage's condition says why a summary does not hold.
    return condition.type not in SUMMARY or (condition.status == "True" and condition.type != "Reconciling")


def _newer_version_event(
    old: TritonDeploymentStatus, new: TritonDeploymentStatus
) -> Iterator[tuple[str, str, str, str]]:
    """The Event of a look that found another version than the looks before it."""
    before, after = (each.source.latest if each.source is not None else None for each in (old, new))
    if before is not None and after is not None and before.version != after.version:
        yield (
            "Normal",
            Reason.NEWER_VERSION,
            f"UpToDate: the source offers {after.label}, and offered {before.label} before",
            "",
        )


def _candidate_events(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str, str]]:
    """The Events of the candidates that failed or were skipped in this pass."""
    states = {each.name: each.state for each in old.candidates}
    for candidate in new.candidates:
        if candidate.state in ("Failed", "Skipped") and states.get(candidate.name) != candidate.state:
            kind = "Warning" if candidate.state == "Failed" else "Normal"
            yield kind, candidate.reason or "", f"candidate {candidate.name}: {candidate.message}", ""


def _target_start_event(
    old: TritonDeploymentStatus, new: TritonDeploymentStatus
) -> Iterator[tuple[str, str, str, str]]:
    """The Event of the start of a target's server, which no condition shows while another revision serves."""
    target, active = new.target, new.active
    if target is not None and active is not None and target != old.target:
        message = (
            f"Available: revision {target.revision} (candidate {target.candidate}) starts; revision {active.revision}"
            " serves until it was measured"
        )
        yield "Normal", Reason.ROLLING_OUT, message, ""


def _active_change_event(
    old: TritonDeploymentStatus, new: TritonDeploymentStatus
) -> Iterator[tuple[str, str, str, str]]:
    """The Event of a change of the active revision, during which the condition Available stays True."""
    before, after = old.active, new.active
    if before is not None and after is not None and before.revision != after.revision:
        message = (
            f"Available: revision {after.revision} (candidate {after.candidate}) replaces revision {before.revision},"
            " and is the active one"
        )
        yield "Normal", Reason.AVAILABLE, message, ""
