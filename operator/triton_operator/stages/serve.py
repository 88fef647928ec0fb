"""Serve: deploy the target revision, measure it through the preview Service, then point the Service to it.

What is observed becomes facts, the facts become the next move, and the move becomes objects.
"""

from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.reference import Dump
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import Parts, as_made, deployment
from triton_operator.resources.server import server
from triton_operator.resources.services import preview_service, service
from triton_operator.rollout import moves, room, trial
from triton_operator.rollout.active import record_active
from triton_operator.rollout.available import availability, record_late, server_state, start_annotations
from triton_operator.rollout.decision import (
    FAILED,
    GIVES_BACK,
    POINTS_TO,
    Figures,
    Move,
    RolloutFacts,
    Server,
    Sharing,
    may_share,
    next_move,
)
from triton_operator.rollout.measurement import Measured, measure
from triton_operator.rollout.release import release
from triton_operator.rollout.trial import ObservedTrial, Trial
from triton_operator.stages.progress import Progress
from triton_operator.stages.selection import Chosen


@dataclass(frozen=True)
class RevisionRollout:
    """The state of the target revision's rollout after its move in this pass."""

    available: Statement
    """The condition Available, which is about the revision that the Service points to."""
    measured: Measured
    """The target's measurement."""
    blocking: Statement | None
    """The condition that keeps the target from being active, or from being complete; None: nothing does."""
    stalled: bool
    """Whether the target failed, so that only a change of the spec, the source or the cluster helps."""
    effects: Effects
    revision: str
    """Key of the target."""
    candidate: str
    """Name of the target's candidate."""
    server: str
    """Name of the target's Deployment."""
    is_active: bool
    """Whether the Service points to the target, as observed."""
    soak: Trial
    """The soak of the active revision, which may not be the target."""
    canary: Trial
    """The target's canary, or the release of another revision's canary."""
    undone: Statement | None
    """Why the target, which was active or had a canary, is not any more; None: it was not undone."""

    @property
    def is_complete(self) -> bool:
        """Whether the target revision is active and its rollout is complete."""
        return self.is_active and self.blocking is None


@dataclass(frozen=True, kw_only=True)
class RolledOut(Progress):
    """A revision is being rolled out, or is active: the target, or the one that the spec names."""

    rollout: RevisionRollout

    @property
    def is_rolled_out(self) -> bool:
        """Whether a revision is rolled out now, or is active."""
        return True

    @property
    def is_complete(self) -> bool:
        """Whether the target revision is active and its rollout is complete."""
        return self.rollout.is_complete

    @property
    def blocking(self) -> Statement | None:
        """The condition that keeps the revision from being active; None: nothing does."""
        return self.rollout.blocking

    @property
    def soaks(self) -> Statement | None:
        """The condition of a soak that goes on and may undo the active revision; None: none does."""
        return self.rollout.soak.condition if self.rollout.soak.goes_on else None


@dataclass(frozen=True, kw_only=True)
class TargetRolledOut(Chosen, RolledOut):
    """The target revision that the flow selected is being rolled out, or is active."""


def serve(context: Context, progress: Chosen) -> TargetRolledOut:
    """Roll the target revision out as far as it may go now."""
    rollout = roll_out(context, _observe(context, progress.dump, progress.target))
    progress = progress.with_condition(rollout.available).with_condition(rollout.measured.condition, rollout.effects)
    again_after = rollout.measured.again_after
    return progress.advance_to(TargetRolledOut, stalled=rollout.stalled, again_after=again_after, rollout=rollout)


@dataclass(frozen=True)
class ObservedTarget:
    """The target with everything observed about it: the source of the facts, and what each move needs."""

    candidate: str
    """Name of the target's candidate."""
    model: str
    """The name under which the target serves the model."""
    parts: Parts
    """The parts of the target's Deployment; if the Deployment exists, its pod template stays as it is."""
    view: ServerView | None
    """The target's Deployment, as observed; None: it does not exist yet."""
    server: Server
    """The state of the target's server."""
    waits: Statement | None
    """The condition of a server that is not ready; None: it is ready."""
    is_active: bool
    """Whether the Service points to the target."""
    measured: Measured
    """The target's measurement, with what it asks of the cluster."""
    soak: Trial
    """The soak of the active revision, which may be the target."""
    canary: ObservedTrial | None
    """The target's canary; None: its Deployment does not exist yet, or it is active, or served before."""
    others_canary: Trial
    """The release of a canary of another revision, whose pods stay until no request can reach them."""
    undone: Statement | None
    """Why the target is not tried again, or why its soak undoes it; None: it is tried, and no soak undoes it."""
    alone: bool
    """Whether no revision is active."""
    yields: bool
    """Whether the servers that made way for the target have to come back while the spec is suspended."""
    proven: bool = False
    """Whether the target served before, so that no measurement, canary or soak judges it."""

    @property
    def name(self) -> str:
        """Name of the target's Deployment."""
        return self.parts.name

    @property
    def facts(self) -> RolloutFacts:
        """The facts that decide the target's next move."""
        sharing = self.canary.sharing if self.canary is not None else Sharing.NONE
        if self.others_canary.holds and not self.proven:
            sharing = Sharing.HELD
        undone, figures = self.undone is not None, self.measured.figures
        return RolloutFacts(self.server, figures, sharing, self.is_active, self.alone, undone, self.yields)


@dataclass(frozen=True)
class _NextStep:
    """The target's next move, and its canary after it."""

    move: Move
    canary: Trial
    """The target's canary, or the release of another revision's canary."""
    undone: Statement | None
    """Why the target is undone, or not tried again; None: it is tried."""


def roll_out(context: Context, target: ObservedTarget) -> RevisionRollout:
    """Take the target's next move."""
    next_step = _decide(context, target)
    move = next_step.move
    available = availability(context, target.name, target.view, target.waits)
    blocking = _blocking(context, target, next_step)
    return RevisionRollout(
        available=available if move in GIVES_BACK else room.with_room_made(context, target.view, available),
        measured=target.measured,
        blocking=blocking,
        stalled=move in FAILED,
        effects=_effects(context, target, next_step),
        revision=target.parts.revision_key,
        candidate=target.candidate,
        server=target.name,
        is_active=target.is_active,
        soak=replace(target.soak, condition=blocking) if move in (Move.UNDO, Move.SHARE) else target.soak,
        canary=next_step.canary,
        undone=next_step.undone,
    )


def _observe(context: Context, dump: Dump, target: Attempt) -> ObservedTarget:
    """Return what is observed of the target."""
    parts = server(context, target, server_image.image_by_digest(context.images.server, target.image_id))
    name = parts.name
    view = context.observed.servers.get(name)
    state, waits = server_state(context, name, view)
    is_ready = state is Server.READY
    is_active = context.active_server == name
    exclusion = moves.exclusion(context, target)
    observed_soak = trial.soak(context, successor="" if is_active or exclusion or state is Server.UNWANTED else name)
    undone = exclusion if not is_active else observed_soak.condition if observed_soak.undoes else None
    released_canary = release(context, "" if undone else name)
    # The preview Service, through which the target is measured, may still point to another revision's canary, or be
    # that of an object whose name is this one's with -preview.
    is_held = released_canary.holds is not None or not context.observed.has_preview
    measured = measure(context, dump, target, view, is_waiting=not is_ready, is_held=is_held, is_active=is_active)
    is_idle = measured.figures is Figures.MISSING and not measured.runs
    return ObservedTarget(
        candidate=target.name,
        model=context.spec.served_name,
        parts=as_made(parts, view),
        view=view,
        server=state,
        waits=waits,
        is_active=is_active,
        measured=measured,
        soak=observed_soak,
        canary=None if view is None or is_active else trial.observe_canary(context, view, is_ready),
        others_canary=released_canary,
        undone=undone,
        alone=context.active_server is None,
        yields=is_idle and room.yields(context, view),
    )


def _decide(context: Context, target: ObservedTarget) -> _NextStep:
    """Return the target's next move. The canary goes on only if the target may share requests."""
    facts = target.facts
    target_canary = target.others_canary
    move = next_move(facts)
    if target.canary is not None and may_share(facts):
        target_canary = trial.advance(context, target.canary)
    return _NextStep(move, target_canary, target.undone or (target_canary.condition if move is Move.UNDO else None))


def _blocking(context: Context, target: ObservedTarget, next_step: _NextStep) -> Statement | None:
    """Return the condition that keeps the target from being active, or from being complete; None: nothing does."""
    measured_condition = target.measured.condition
    by_move = {
        Move.UNDO: next_step.undone,
        Move.SHARE: next_step.canary.condition,
        Move.SETTLE: measured_condition,
        Move.YIELD: _suspended_condition(context, target),
        Move.GIVE_UP: measured_condition
        if target.measured.figures in (Figures.MISSED, Figures.FAILED)
        else _late_condition(target),
        Move.STOP: target.waits,
        Move.START: target.waits,
        Move.MEASURE: None if measured_condition.status else measured_condition,
    }
    return by_move.get(next_step.move)


def _late_condition(target: ObservedTarget) -> Statement | None:
    """Return why the operator no longer waits for the target's server or its measurement; None: it still does."""
    return target.waits if target.server is Server.LATE else target.measured.late


def _suspended_condition(context: Context, target: ObservedTarget) -> Statement:
    message = f"spec.suspend is true, so Deployment {target.name} waits, and {context.active_server} has the GPUs again"
    return Statement("PerformanceMeasured", False, Reason.SUSPENDED, message)


def _effects(context: Context, target: ObservedTarget, next_step: _NextStep) -> Effects:
    """Return what the move asks of the cluster."""
    name = target.name
    move = next_step.move
    is_given_back = next_step.move in GIVES_BACK
    is_measured = move is Move.YIELD or target.measured.figures in (Figures.MISSED, Figures.FAILED)
    replicas = room.replicas(context, target.view, failed=is_given_back, done=is_measured)
    parts = replace(target.parts, replicas=replicas, notes=start_annotations(context, target.view, replicas))
    points_to = target.soak.back_to or (name if move in POINTS_TO else context.active_server)
    # Without replicas the target's Deployment goes, so that its deadline begins anew once there are replicas.
    is_kept = points_to == name or (move is not Move.UNDO and context.spec.serving.replicas > 0)
    objects = [deployment(context, parts)] if is_kept else []
    objects.append(preview_service(context, next_step.canary.holds or name))
    effects = Effects(tuple(objects)) + _measuring(target, move) + next_step.canary.effects
    effects += room.scale_active(context, target.view, is_given_back)
    if (late := _late_condition(target)) is not None:
        effects += record_late(context, name, target.view, late)
    if points_to is not None:
        effects += Effects((service(context, points_to),)) + record_active(context, points_to, target.model)
    if target.view is not None and points_to == name and not target.is_active and not target.proven:
        effects += moves.record_move(context, target.view)
    return effects


def _measuring(target: ObservedTarget, move: Move) -> Effects:
    """Return what the measurement asks for, without its Job if its server is given up: that pod may hold a GPU."""
    effects = target.measured.effects
    is_measured = target.measured.figures is not Figures.MISSING
    if is_measured or move is not Move.GIVE_UP or target.server is not Server.LATE:
        return effects
    return replace(effects, objects=(), jobs=frozenset())


def canary_of(context: Context, progress: Progress) -> Trial:
    """Return the target's canary, or the release of one that ended, whichever step the flow has reached."""
    return progress.rollout.canary if isinstance(progress, RolledOut) else release(context)


def soak_of(context: Context, progress: Progress) -> Trial:
    """Return the soak of the active revision, whichever step the flow has reached."""
    if not context.spec.serving.serves:
        return Trial()
    return progress.rollout.soak if isinstance(progress, RolledOut) else trial.soak(context)


def is_measuring_active(context: Context, progress: Progress) -> bool:
    """Whether the active revision is being measured again, which is a load on it."""
    active = context.triton_deployment.status.active
    if not isinstance(progress, TargetRolledOut) or active is None:
        return False
    return progress.target.key == active.revision and progress.rollout.measured.result is None


def keep_serving(context: Context, active_soak: Trial, target_canary: Trial) -> Effects:
    """Keep the Service of the active revision, and its replicas, while no target is known yet."""
    if context.active_server is None:
        return Effects()
    points_to = active_soak.back_to or context.active_server
    effects = Effects((service(context, points_to),)) + record_active(context, points_to) + target_canary.effects
    return effects + room.scale_active(context, None, failed=True)
