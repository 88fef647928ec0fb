"""Serve: deploy the target revision, measure it through the preview Service, then point the Service to it.

What is observed becomes facts, the facts become the next move, and the move becomes objects.
"""

from dataclasses import dataclass, replace
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.candidates import server_image
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.reference import Dump
from triton_operator.observed.server import ServerView
from triton_operator.resources.as_made import as_made
from triton_operator.resources.server import server
from triton_operator.resources.services import preview_service, service
from triton_operator.rollout import canary, moves, room, soak
from triton_operator.rollout.active import pointed
from triton_operator.rollout.available import availability, notes, remembered, started
from triton_operator.rollout.canary import Canary
from triton_operator.rollout.decision import (
    FAILED,
    GIVES_BACK,
    POINTS_TO,
    PROMOTES,
    Figures,
    Move,
    RolloutFacts,
    Server,
    Trial,
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
    rollout = roll_out(context, _find(context, progress.dump, progress.target))
    noted = progress.noting(rollout.available).noting(rollout.measured.condition, rollout.effects)
    again = rollout.measured.again_after
    return noted.reached(TargetRolledOut, stalled=rollout.stalled, again_after=again, rollout=rollout)


@dataclass(frozen=True)
class ObservedTarget:
    """The target and all that concerns it, as observed."""

    revision: str
    """Key of the target revision."""
    candidate: str
    """Name of the target's candidate."""
    model: str
    """The name under which the target serves the model."""
    body: dict[str, Any]
    """The target's Deployment, as it would be made now."""
    view: ServerView | None
    server: Server
    waits: Statement | None
    """What the target's server waits for; None: nothing."""
    is_active: bool
    measured: Measured
    soak: Soaking
    canary: Canary
    undone: Statement | None
    alone: bool
    yields: bool
    proven: bool = False
    """Whether the target served before, so that no measurement, canary or soak judges it."""

    @property
    def name(self) -> str:
        """Name of the target's Deployment."""
        return str(self.body["metadata"]["name"])

    @property
    def facts(self) -> RolloutFacts:
        """What decides the target's next move."""
        held = self.canary.holds and not self.proven
        trial = Trial.GOES_ON if self.canary.goes_on else Trial.HELD if held else Trial.NONE
        undone, figures = self.undone is not None, self.measured.figures
        return RolloutFacts(self.server, figures, trial, self.is_active, self.alone, undone, self.yields)


def roll_out(context: Context, found: ObservedTarget) -> RevisionRollout:
    """Take the target's next move."""
    move = next_move(found.facts)
    available = availability(context, found.name, found.view, found.waits)
    blocking = _blocking(context, found, move)
    return RevisionRollout(
        available=available if move in GIVES_BACK else room.made_way(context, found.view, available),
        measured=found.measured,
        blocking=blocking,
        stalled=move in FAILED,
        effects=_effects(context, found, move),
        revision=found.revision,
        candidate=found.candidate,
        server=found.name,
        is_active=found.is_active,
        soak=replace(found.soak, condition=blocking) if move in (Move.UNDO, Move.SHARE) else found.soak,
        canary=found.canary,
        undone=found.undone,
    )


def _find(context: Context, dump: Dump, target: Attempt) -> ObservedTarget:
    """What is observed of the target."""
    body = server(context, target, server_image.by_digest(context.images.server, target.image_id))
    name = body["metadata"]["name"]
    view = context.observed.servers.get(name)
    state, waits = started(context, name, view)
    is_active, barred = context.active_server == name, moves.excluded(context, target)
    soaked = soak.soak(context, successor="" if is_active or barred or state is Server.UNWANTED else name)
    undone = barred if not is_active else soaked.condition if soaked.back_to else None
    trial = canary.release(context, "" if undone else name)
    enough = view is not None and (room.is_enough(context, view) or (is_active and view.answers))
    # Another one's canary still has the preview Service, through which the target is measured.
    held = trial.holds is not None
    measured = measure(context, dump, target, waits=not enough, held=held, is_active=is_active)
    idle = measured.figures is Figures.MISSING and not measured.runs
    if idle and state is Server.READY and room.is_spent(context, view):
        words = f"the measurement of Deployment {name} did not begin in the time for which"
        message = f"{words} {context.active_server} made room: {measured.condition.message}"
        state, waits = Server.LATE, Statement("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, message)
    found = ObservedTarget(
        revision=target.key,
        candidate=target.name,
        model=context.spec.served_name,
        body=body,
        view=view,
        server=state,
        waits=waits,
        is_active=is_active,
        measured=measured,
        soak=soaked,
        canary=trial,
        undone=undone,
        alone=context.active_server is None,
        yields=idle and room.yields(context, view),
    )
    # A canary that has begun goes on while no pod is ready, so it counts what would come next if one were.
    if view is None or state is Server.LATE or next_move(replace(found.facts, server=Server.READY)) not in PROMOTES:
        return found
    trial = canary.advance(context, view, is_ready=state is Server.READY)
    return replace(found, canary=trial, undone=trial.condition if trial.holds else None)


def _blocking(context: Context, found: ObservedTarget, move: Move) -> Statement | None:
    """What the target waits for or failed at; None: nothing."""
    measured = found.measured.condition
    by_move = {
        Move.UNDO: found.undone,
        Move.SHARE: found.canary.condition,
        Move.SETTLE: measured,
        Move.YIELD: _suspended(context, found),
        Move.GIVE_UP: measured if found.measured.figures in (Figures.MISSED, Figures.FAILED) else found.waits,
        Move.STOP: found.waits,
        Move.START: found.waits,
        Move.MEASURE: None if measured.status else measured,
    }
    return by_move.get(move)


def _suspended(context: Context, found: ObservedTarget) -> Statement:
    words = f"spec.suspend is true, so Deployment {found.name} waits, and {context.active_server} has the GPUs again"
    return Statement("PerformanceMeasured", False, Reason.SUSPENDED, words)


def _effects(context: Context, found: ObservedTarget, move: Move) -> Effects:
    """What the move asks of the cluster."""
    name, failed = found.name, move in GIVES_BACK
    done = move is Move.YIELD or found.measured.figures in (Figures.MISSED, Figures.FAILED)
    replicas = room.replicas(context, found.view, failed=failed, done=done)
    body = as_made(found.body, found.view, notes(context, found.view, replicas))
    # Without replicas no target is kept, so that its deadline begins anew with them.
    stays = move is not Move.UNDO and (found.is_active or context.spec.serving.replicas > 0)
    objects = [body | {"spec": body["spec"] | {"replicas": replicas}}] if stays else []
    objects.append(preview_service(context, found.canary.holds or name))
    effects = Effects(tuple(objects)) + found.measured.effects + found.canary.effects
    effects += room.old_server(context, found.view, failed)
    if found.server is Server.LATE and found.waits is not None:
        effects += remembered(context, name, found.view, found.waits)
    points_to = found.soak.back_to or (name if move in POINTS_TO else context.active_server)
    if points_to is not None:
        effects += Effects((service(context, points_to),)) + pointed(context, points_to, found.model)
    if found.view is not None and points_to == name and not found.is_active and not found.proven:
        effects += moves.moved(context, found.view)
    return effects


def canary_of(context: Context, progress: Progress) -> Canary:
    """The canary of the target revision, or what is left of one, however far the flow came."""
    return progress.rollout.canary if isinstance(progress, RolledOut) else canary.release(context)


def soak_of(context: Context, progress: Progress) -> Soaking:
    """The soak of the active revision, however far the flow came."""
    return progress.rollout.soak if isinstance(progress, RolledOut) else soak.soak(context)


def measures_active(context: Context, progress: Progress) -> bool:
    """Whether the active revision is measured again, which is a load on it too."""
    active = context.deployment.status.active
    if not isinstance(progress, TargetRolledOut) or active is None:
        return False
    return progress.target.key == active.revision and progress.rollout.measured.result is None


def keep_serving(context: Context, soaked: Soaking, trial: Canary) -> Effects:
    """Keep the Service of the active revision while the target is not known yet."""
    if context.active_server is None:
        return Effects()
    points_to = soaked.back_to or context.active_server
    effects = Effects((service(context, points_to),)) + pointed(context, points_to) + trial.effects
    return effects + room.old_server(context, None, failed=True)
