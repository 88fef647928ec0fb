"""Serve: deploy the target revision, measure it through the preview Service, then point the Service to it."""

from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason, reason_of
from triton_converters.contract.records import record_name
from triton_converters.contract.results import MeasureResult
from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import best_row
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.jobs.measure import measure_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import unmet
from triton_operator.jobs.run import Run, run, waiting
from triton_operator.observed.job import Record
from triton_operator.observed.pod import Trouble
from triton_operator.observed.snapshot import ServerView
from triton_operator.resources.as_made import as_made
from triton_operator.resources.claim import shared_by_nodes
from triton_operator.resources.server import server
from triton_operator.resources.services import preview_service, service
from triton_operator.resources.work import Work
from triton_operator.rollout import canary, room, soak
from triton_operator.rollout.canary import Canary
from triton_operator.rollout.regression import compared
from triton_operator.rollout.soak import Soaking
from triton_operator.stages.progress import Progress
from triton_operator.stages.selection import Chosen

STOPPED = Verdict("Available", False, Reason.SUSPENDED, "spec.serving.replicas is 0, so no server runs")


@dataclass(frozen=True)
class Rollout:
    """How far the rollout of the target revision came."""

    available: Verdict
    """The condition of what the Service points to."""
    measured: Verdict
    """The condition of the target's measurement."""
    blocking: Verdict | None
    """What the target waits for or failed at; None: nothing."""
    stalled: bool
    """Whether the target failed; only a change ends that."""
    effects: Effects
    server: str
    """Name of the target's Deployment."""
    serves: bool
    """Whether the Service points to the target, as observed."""
    record: Record | None
    """The record of the online sweep through the preview Service; None: not measured yet."""
    soak: Soaking
    """The soak of the active revision, which may not be the target."""
    canary: Canary
    """The target's canary, or what is left of another one's."""
    undone: Verdict | None
    """Why the target, which was active or had a canary, is not any more; None: it was not undone."""

    @property
    def is_complete(self) -> bool:
        """Whether the target revision serves and nothing of it is left to do."""
        return self.serves and self.blocking is None


@dataclass(frozen=True, kw_only=True)
class RolledOut(Chosen):
    """The target revision is on its way, or serves."""

    rollout: Rollout


def serve(context: Context, progress: Chosen) -> RolledOut:
    """Roll the target revision out as far as it may go now."""
    rollout = _rollout(context, progress.dump, progress.target)
    return RolledOut(
        attempts=progress.attempts,
        verdicts=(*progress.verdicts, rollout.available, rollout.measured),
        effects=progress.effects + rollout.effects,
        stalled=rollout.stalled,
        source=progress.source,
        dump=progress.dump,
        searches=progress.searches,
        ranking=progress.ranking,
        target=progress.target,
        rollout=rollout,
    )


def _rollout(context: Context, dump: Dump, target: Attempt) -> Rollout:
    """Start the target next to the active revision, measure it, and let the Service point to it."""
    image = server_image.by_digest(context.images.server, target.image_id)
    body = server(context, target, image)
    name = body["metadata"]["name"]
    view = context.observed.servers.get(name)
    body = as_made(body, view)
    start, late = _start(context, name, view)
    ready = view is not None and room.is_enough(context, view)
    serves = context.serving == name
    barred = soak.excluded(context, target)
    soaked = soak.soak(context, successor="" if serves or barred or not context.spec.serving.replicas else name)
    undone = barred if not serves else soaked.verdict if soaked.back_to else None
    trial = canary.release(context, "" if undone else name)
    work = measure_work(context, dump, target)
    # Another one's canary still has the preview Service, through which the target is measured.
    known = _sweep(context, work, ready and trial.holds is None)
    measured = _measurement(context, dump, target, known, starts=not ready, serves=serves)
    missed = known.failure is not None or (known.record is not None and not measured.status)
    # A first revision that breaks a constraint serves all the same, and the status says so: better than nothing.
    may_serve = bool(measured.status) or (known.record is not None and context.serving is None)
    if view is not None and may_serve and not serves and not (late or undone or trial.holds):
        trial = canary.advance(context, view, is_ready=start is None)
        undone = trial.verdict if trial.holds else None
    failed = late or missed or undone is not None
    body["spec"]["replicas"] = room.replicas(context, view, failed)
    # Without replicas no target is kept, so that its deadline begins anew with them.
    deployments = (body,) if (serves or context.spec.serving.replicas) and undone is None else ()
    effects = Effects((*deployments, preview_service(context, trial.holds or name))) + known.effects + trial.effects
    effects += room.old_server(context, view, failed)
    if known.record is not None and not measured.status:
        trouble = Trouble(measured.reason, measured.message)
        effects += unmet(context, dict.fromkeys(_judged_by(context, work, target), trouble))
    takes_over = start is None and may_serve and undone is None and not trial.goes_on and trial.holds is None
    points_to = soaked.back_to or (name if takes_over else context.serving)
    if points_to is not None:
        effects += Effects((service(context, points_to),))
    if view is not None and points_to == name and not serves:
        effects += soak.moved(context, view)
    waits = trial.verdict if trial.goes_on else None
    availability = _availability(context, name, view, start)
    return Rollout(
        available=availability if failed else room.made_way(context, view, availability),
        measured=measured,
        blocking=undone or waits or (measured if missed else start) or (None if measured.status else measured),
        stalled=failed,
        effects=effects,
        server=name,
        serves=serves,
        record=known.record,
        soak=replace(soaked, verdict=undone or waits or soaked.verdict),
        canary=trial,
        undone=undone,
    )


def _judged_by(context: Context, work: Work, target: Attempt) -> list[str]:
    """Names of the records with the figures that the target is judged by before it may serve."""
    judged = [record_name(work.stage, work.key)]
    if context.spec.selection.scenario != "Online":
        judged.append(record_name("profile", target.profile_key))
    return judged


def canary_of(context: Context, progress: Progress) -> Canary:
    """The canary of the target revision, or what is left of one, however far the flow came."""
    return progress.rollout.canary if isinstance(progress, RolledOut) else canary.release(context)


def soak_of(context: Context, progress: Progress) -> Soaking:
    """The soak of the active revision, however far the flow came."""
    return progress.rollout.soak if isinstance(progress, RolledOut) else soak.soak(context)


def _sweep(context: Context, work: Work, ready: bool) -> Run:
    """The online sweep; it is cancelled when no replicas are wanted, because it would fail without a server."""
    known = run(context, work, start=ready)
    if known.record is not None:
        result = known.record.outcome.result
        assert isinstance(result, MeasureResult)
        if not result.online:
            # An earlier version's publisher let a client answer anything.
            message = f"the Job measured nothing; type: {context.retry_command}"
            trouble = Trouble(Reason.MEASUREMENT_FAILED, message)
            remembered = unmet(context, {record_name(work.stage, work.key): trouble})
            return replace(known, record=None, failure=trouble, effects=known.effects + remembered)
    if context.spec.serving.replicas or not known.active:
        return known
    return replace(known, effects=replace(known.effects, objects=(), jobs=frozenset()), active=False)


def measures_active(context: Context, progress: Progress) -> bool:
    """Whether the active revision is measured again, which is a load on it too."""
    active = context.deployment.status.active
    if not isinstance(progress, RolledOut) or active is None:
        return False
    return progress.target.key == active.revision and progress.rollout.record is None


def keep_serving(context: Context, soaked: Soaking, trial: Canary) -> Effects:
    """Keep the Service of the active revision while the target is not known yet."""
    if context.serving is None:
        return Effects()
    points_to = soaked.back_to or context.serving
    effects = Effects((service(context, points_to),)) + trial.effects
    return effects + room.old_server(context, None, failed=True)


def _availability(context: Context, target: str, view: ServerView | None, start: Verdict | None) -> Verdict:
    """The condition of what the Service points to, which may not be the target yet."""
    if context.serving not in (None, target):
        return available(context)
    if start is not None:
        return start
    assert view is not None
    message = f"Service {context.name} points to {target}{_still_to_come(view)}{_on_one_node(context)}"
    return Verdict("Available", True, Reason.AVAILABLE, message)


def _on_one_node(context: Context) -> str:
    """Words about replicas that one lost node takes away; empty if the claim lets them spread, or is the user's."""
    if context.spec.serving.replicas < 2 or shared_by_nodes(context) is not False:
        return ""
    return f"; all its pods run on one node, because claim {context.claim_name} is not ReadWriteMany"


def available(context: Context) -> Verdict:
    """The condition of the active revision while another revision is made ready."""
    view = context.observed.servers.get(context.serving or "")
    if view is None:
        return Verdict("Available", None, Reason.WAITING, "no revision is active yet")
    if context.spec.serving.replicas == 0:
        return STOPPED
    if view.answers:
        message = f"Deployment {view.name} stays active until another revision has passed{_still_to_come(view)}"
        return Verdict("Available", True, Reason.AVAILABLE, message)
    if view.trouble is not None:
        return Verdict("Available", False, view.trouble.reason, view.trouble.message)
    return Verdict("Available", False, Reason.ROLLING_OUT, f"Deployment {view.name} has no ready pod")


def _still_to_come(view: ServerView) -> str:
    """Words about the pods of an active server that are not ready, and what keeps one of them; empty: all are."""
    if view.ready_pods >= view.replicas:
        return ""
    words = f"; {view.ready_pods} of {view.replicas} pods are ready"
    return f"{words}: {view.trouble.message}" if view.trouble is not None else words


def _start(context: Context, name: str, view: ServerView | None) -> tuple[Verdict | None, bool]:
    """What the target's server waits for, and whether its deadline has passed.

    None: it is ready. One ready pod is enough for the active revision, which an autoscaler may let grow at any time.
    """
    if context.spec.serving.replicas == 0:
        return STOPPED, False
    if view is None:
        return Verdict("Available", False, Reason.ROLLING_OUT, f"Deployment {name} is being created"), False
    if room.is_enough(context, view) or (context.serving == name and view.answers):
        return None, False
    if view.progress_deadline_exceeded or _age(context, view) > context.spec.serving.progress_deadline_seconds:
        seconds = context.spec.serving.progress_deadline_seconds
        late = f"Deployment {name} was not ready within {seconds} s"
        if view.trouble is not None:
            return Verdict("Available", False, view.trouble.reason, f"{late}: {view.trouble.message}"), True
        return _said_before(context, late) or Verdict("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, late), True
    if view.trouble is not None:
        return Verdict("Available", False, view.trouble.reason, view.trouble.message), False
    return Verdict("Available", False, Reason.ROLLING_OUT, f"Deployment {name} is starting"), False


def _said_before(context: Context, late: str) -> Verdict | None:
    """The status's own explanation of a late server: once scaled to 0, it has no pod left to explain the delay."""
    for each in context.deployment.status.conditions:
        if each.type == "Stalled" and each.status == "True" and each.message.startswith(late):
            try:
                return Verdict("Available", False, reason_of(each.reason), each.message)
            except KeyError:
                # A newer operator's reason, from before a rollback.
                return None
    return None


def _age(context: Context, view: ServerView) -> float:
    """Seconds since the Deployment was made; 0 for one that was ready once, as the active one was: it is not late."""
    if context.serving == view.name or view.was_ready:
        return 0.0
    return view.age(context.now)


def _measurement(context: Context, dump: Dump, target: Attempt, known: Run, starts: bool, serves: bool) -> Verdict:
    """The condition of the online sweep through the preview Service."""
    if known.failure is not None:
        return Verdict("PerformanceMeasured", False, known.failure.reason, known.failure.message)
    if known.record is None:
        if starts and not known.active:
            return Verdict("PerformanceMeasured", None, Reason.WAITING, f"the server of {target.name} is not ready yet")
        reason, message = waiting("the online sweep through the preview Service", known, context)
        return Verdict("PerformanceMeasured", False, reason, message)
    result = known.record.outcome.result
    assert isinstance(result, MeasureResult)
    selection = context.spec.selection
    # Constraints on the offline sweep say nothing about this one.
    constraints = selection.constraints.asked() if selection.scenario == "Online" else ()
    best = best_row(result.online, selection.objectives, constraints)
    if best.violation is not None and selection.fallback == "None":
        message = (
            f"{target.name} breaks a constraint through the preview Service: {best.violation} at its closest"
            f" measurement ({best.load}); relax the constraint, or look for what disturbs the node"
        )
        return Verdict("PerformanceMeasured", False, Reason.CONSTRAINTS_NOT_MET, message)
    message = f"{best.row.throughput:g} inferences/s, p99 {best.row.p99} us at {best.load}"
    if best.violation is not None:
        message += f"; it breaks a constraint, which spec.selection.fallback allows: {best.violation}"
    assert target.profile is not None
    comparison = compared(context, dump.source, target.profile, result)
    if comparison is None:
        return Verdict("PerformanceMeasured", True, Reason.MEASURED, message)
    message += f"; {comparison.words}"
    asked, regressed = context.spec.performance.regression, comparison.reason is Reason.PERFORMANCE_REGRESSED
    if regressed and asked is not None and asked.block and not serves and context.serving is not None:
        message += f"; Deployment {context.serving} stays active, because spec.performance.regression.block is true"
        return Verdict("PerformanceMeasured", False, comparison.reason, message)
    return Verdict("PerformanceMeasured", True, comparison.reason, message)
