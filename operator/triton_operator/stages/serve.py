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
from triton_operator.rollout import canary, moves, room, soak
from triton_operator.rollout.active import record_active
from triton_operator.rollout.available import availability, record_late, server_state, start_annotations
from triton_operator.rollout.canary import Canary, ObservedCanary
from triton_operator.rollout.decision import (
    FAILED,
    GIVES_BACK,
    POINTS_TO,
    Figures,
    Move,
    RolloutFacts,
    Server,
    Trial,
    may_share,
    next_move,
)
from triton_operator.rollout.measurement import Measured, measure
from triton_operator.rollout.soak import Soaking
from triton_operator.stages.progress import Progress
from triton_operator.stages.selection import Chosen


@dataclass(frozen=True)
class RevisionRollout:
    """How far the rollout of the target revision came."""

    available: Statement
    """The condition of what the Service points to."""
    measured: Measured
    """The target's measurement."""
    blocking: Statement | None
    """What the target waits for or failed at; None: nothing."""
    stalled: bool
    """Whether the target failed; only a change ends that."""
    effects: Effects
    revision: str
    """Key of the target."""
    candidate: str
    """Name of the target's candidate."""
    server: str
    """Name of the target's Deployment."""
    is_active: bool
    """Whether the Service points to the target, as observed."""
    soak: Soaking
    """The soak of the active revision, which may not be the target."""
    canary: Canary
    """The target's canary, or what is left of another one's."""
    undone: Statement | None
    """Why the target, which was active or had a canary, is not any more; None: it was not undone."""

    @property
    def is_complete(self) -> bool:
        """Whether the target revision serves and nothing of it is left to do."""
        return self.is_active and self.blocking is None


@dataclass(frozen=True, kw_only=True)
class RolledOut(Progress):
    """A revision is on its way, or serves: the target, or the one that the spec names."""

    rollout: RevisionRollout

    @property
    def is_rolled_out(self) -> bool:
        """Whether a revision is on its way, or serves."""
        return True

    @property
    def is_complete(self) -> bool:
        """Whether the target revision serves and nothing of it is left to do."""
        return self.rollout.is_complete

    @property
    def blocking(self) -> Statement | None:
        """What the revision waits for or failed at; None: nothing."""
        return self.rollout.blocking

    @property
    def soaks(self) -> Statement | None:
        """The condition of a soak that goes on and may undo the active revision; None: none does."""
        return self.rollout.soak.condition if self.rollout.soak.goes_on else None


@dataclass(frozen=True, kw_only=True)
class TargetRolledOut(Chosen, RolledOut):
    """The target revision, which the flow came to, is on its way, or serves."""


def serve(context: Context, progress: Chosen) -> TargetRolledOut:
    """Roll the target revision out as far as it may go now."""
    rollout = roll_out(context, _observe(context, progress.dump, progress.target))
    noted = progress.with_condition(rollout.available).with_condition(rollout.measured.condition, rollout.effects)
    again = rollout.measured.again_after
    return noted.advance_to(TargetRolledOut, stalled=rollout.stalled, again_after=again, rollout=rollout)


@dataclass(frozen=True)
class ObservedTarget:
    """The target and all that concerns it, as observed: what the facts are made of, and what each move needs."""

    candidate: str
    """Name of the target's candidate."""
    model: str
    """The name under which the target serves the model."""
    parts: Parts
    """What the target's Deployment is made of; if it is there, its pods stay as they are."""
    view: ServerView | None
    """The target's Deployment, as observed; None: it is not there yet."""
    server: Server
    """How far the target's server is."""
    waits: Statement | None
    """What the target's server waits for; None: nothing."""
    is_active: bool
    """Whether the Service points to the target."""
    measured: Measured
    """The target's measurement, with what it takes to go on with it."""
    soak: Soaking
    """The soak of the active revision, which may be the target."""
    canary: ObservedCanary | None
    """The target's canary; None: the target is not there yet, or active, or served before."""
    others_canary: Canary
    """What is left of a canary of another revision."""
    undone: Statement | None
    """Why the target is not tried again, or is undone by its soak; None: neither is so."""
    alone: bool
    """Whether no revision is active."""
    yields: bool
    """Whether what made way for the target has to come back while the spec is suspended."""
    proven: bool = False
    """Whether the target served before, so that no measurement, canary or soak judges it."""

    @property
    def name(self) -> str:
        """Name of the target's Deployment."""
        return self.parts.name

    @property
    def facts(self) -> RolloutFacts:
        """What decides the target's next move."""
        trial = self.canary.trial if self.canary is not None else Trial.NONE
        if self.others_canary.holds and not self.proven:
            trial = Trial.HELD
        undone, figures = self.undone is not None, self.measured.figures
        return RolloutFacts(self.server, figures, trial, self.is_active, self.alone, undone, self.yields)


@dataclass(frozen=True)
class _NextStep:
    """The target's next move, with what becomes of its canary by that."""

    move: Move
    canary: Canary
    """The target's canary, or what is left of another one's."""
    undone: Statement | None
    """Why the target is undone, or not tried again; None: it is tried."""


def roll_out(context: Context, found: ObservedTarget) -> RevisionRollout:
    """Take the target's next move."""
    following = _decide(context, found)
    move = following.move
    available = availability(context, found.name, found.view, found.waits, points=move in POINTS_TO)
    blocking = _blocking(context, found, following)
    return RevisionRollout(
        available=available if move in GIVES_BACK else room.with_room_made(context, found.view, available),
        measured=found.measured,
        blocking=blocking,
        stalled=move in FAILED,
        effects=_effects(context, found, following),
        revision=found.parts.revision_key,
        candidate=found.candidate,
        server=found.name,
        is_active=found.is_active,
        soak=replace(found.soak, condition=blocking) if move in (Move.UNDO, Move.SHARE) else found.soak,
        canary=following.canary,
        undone=following.undone,
    )


def _observe(context: Context, dump: Dump, target: Attempt) -> ObservedTarget:
    """Return what is observed of the target."""
    parts = server(context, target, server_image.image_by_digest(context.images.server, target.image_id))
    name = parts.name
    view = context.observed.servers.get(name)
    state, waits = server_state(context, name, view)
    is_ready, is_active, barred = state is Server.READY, context.active_server == name, moves.exclusion(context, target)
    soaked = soak.soak(context, successor="" if is_active or barred or state is Server.UNWANTED else name)
    undone = barred if not is_active else soaked.condition if soaked.back_to else None
    left = canary.release(context, "" if undone else name)
    # Another one's canary still has the preview Service, through which the target is measured.
    held = left.holds is not None
    measured = measure(context, dump, target, view, waits=not is_ready, held=held, is_active=is_active)
    idle = measured.figures is Figures.MISSING and not measured.runs
    return ObservedTarget(
        candidate=target.name,
        model=context.spec.served_name,
        parts=as_made(parts, view),
        view=view,
        server=state,
        waits=waits,
        is_active=is_active,
        measured=measured,
        soak=soaked,
        canary=None if view is None or is_active else canary.observe(context, view, is_ready),
        others_canary=left,
        undone=undone,
        alone=context.active_server is None,
        yields=idle and room.yields(context, view),
    )


def _decide(context: Context, found: ObservedTarget) -> _NextStep:
    """Return the target's next move; a canary that does not count stays as it is recorded."""
    facts, trial = found.facts, found.others_canary
    move = next_move(facts)
    if found.canary is not None and may_share(facts):
        trial = canary.advance(context, found.canary)
    return _NextStep(move, trial, found.undone or (trial.condition if move is Move.UNDO else None))


def _blocking(context: Context, found: ObservedTarget, following: _NextStep) -> Statement | None:
    """What the target waits for or failed at; None: nothing."""
    measured = found.measured.condition
    by_move = {
        Move.UNDO: following.undone,
        Move.SHARE: following.canary.condition,
        Move.SETTLE: measured,
        Move.YIELD: _suspended_condition(context, found),
        Move.GIVE_UP: measured
        if found.measured.figures in (Figures.MISSED, Figures.FAILED)
        else _late_condition(found),
        Move.STOP: found.waits,
        Move.START: found.waits,
        Move.MEASURE: None if measured.status else measured,
    }
    return by_move.get(following.move)


def _late_condition(found: ObservedTarget) -> Statement | None:
    """Why the target's server, or its measurement, is not waited for any more; None: it is."""
    return found.waits if found.server is Server.LATE else found.measured.late


def _suspended_condition(context: Context, found: ObservedTarget) -> Statement:
    words = f"spec.suspend is true, so Deployment {found.name} waits, and {context.active_server} has the GPUs again"
    return Statement("PerformanceMeasured", False, Reason.SUSPENDED, words)


def _effects(context: Context, found: ObservedTarget, following: _NextStep) -> Effects:
    """What the move asks of the cluster."""
    name, move, failed = found.name, following.move, following.move in GIVES_BACK
    done = move is Move.YIELD or found.measured.figures in (Figures.MISSED, Figures.FAILED)
    replicas = room.replicas(context, found.view, failed=failed, done=done)
    parts = replace(found.parts, replicas=replicas, notes=start_annotations(context, found.view, replicas))
    # Without replicas no target is kept, so that its deadline begins anew with them.
    stays = move is not Move.UNDO and (found.is_active or context.spec.serving.replicas > 0)
    objects = [deployment(context, parts)] if stays else []
    objects.append(preview_service(context, following.canary.holds or name))
    effects = Effects(tuple(objects)) + found.measured.effects + following.canary.effects
    effects += room.scale_active(context, found.view, failed)
    if (late := _late_condition(found)) is not None:
        effects += record_late(context, name, found.view, late)
    points_to = found.soak.back_to or (name if move in POINTS_TO else context.active_server)
    if points_to is not None:
        effects += Effects((service(context, points_to),)) + record_active(context, points_to, found.model)
    if found.view is not None and points_to == name and not found.is_active and not found.proven:
        effects += moves.record_move(context, found.view)
    return effects


def canary_of(context: Context, progress: Progress) -> Canary:
    """The canary of the target revision, or what is left of one, however far the flow came."""
    return progress.rollout.canary if isinstance(progress, RolledOut) else canary.release(context)


def soak_of(context: Context, progress: Progress) -> Soaking:
    """The soak of the active revision, however far the flow came."""
    return progress.rollout.soak if isinstance(progress, RolledOut) else soak.soak(context)


def is_measuring_active(context: Context, progress: Progress) -> bool:
    """Whether the active revision is measured again, which is a load on it too."""
    active = context.triton_deployment.status.active
    if not isinstance(progress, TargetRolledOut) or active is None:
        return False
    return progress.target.key == active.revision and progress.rollout.measured.result is None


def keep_serving(context: Context, soaked: Soaking, trial: Canary) -> Effects:
    """Keep the Service of the active revision while the target is not known yet."""
    if context.active_server is None:
        return Effects()
    points_to = soaked.back_to or context.active_server
    effects = Effects((service(context, points_to),)) + record_active(context, points_to) + trial.effects
    return effects + room.scale_active(context, None, failed=True)
