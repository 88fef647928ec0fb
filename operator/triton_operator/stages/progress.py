"""The progress that each step of the flow takes and returns. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from triton_converters.contract.reasons import Reason
from triton_operator.api.resolved import Resolved
from triton_operator.api.status import PublishedStatus
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement

P = TypeVar("P", bound="Progress")
T = TypeVar("T", bound="Progress")


@dataclass(frozen=True)
class Round:
    """The candidates after one stage, and what that stage asks of the cluster."""

    condition: Statement
    effects: Effects
    attempts: tuple[Attempt, ...]
    again_after: float | None = None
    """Seconds until the operator tries a candidate that failed again; None: it tries none again."""

    @property
    def has_failed(self) -> bool:
        """Whether no candidate is left."""
        return self.condition.reason in (Reason.ALL_CANDIDATES_FAILED, Reason.WORSE_THAN_BEFORE)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of the flow. A step takes the progress of the step before it and returns its own.

    A step that goes on returns what later steps need as a type of its own; one that cannot go on returns ``waits``.
    """

    attempts: tuple[Attempt, ...]
    """Every candidate, in its present state."""
    conditions: tuple[Statement, ...] = ()
    effects: Effects = field(default_factory=Effects)
    waits: bool = False
    """Whether this step goes on or has failed, so that no later step is taken in this pass."""
    stalled: bool = False
    """Whether this step has failed, so that nothing more is tried until something changes."""
    resolved: Resolved | None = None
    """What takes the place of `Context.resolved` from the next pass on; None: nothing does."""
    published: PublishedStatus | None = None
    """The image that the target is published as; None: it is not."""
    again_after: float | None = None
    """Seconds until time alone lets the flow go on, or changes a condition; None: time alone changes nothing."""

    @property
    def is_rolled_out(self) -> bool:
        """Whether a revision is rolled out now, or is active."""
        return False

    @property
    def is_complete(self) -> bool:
        """Whether the target revision is active and its rollout is complete."""
        return False

    @property
    def blocking(self) -> Statement | None:
        """The condition that keeps a revision from being active; None: nothing does, or none is rolled out."""
        return None

    @property
    def soaks(self) -> Statement | None:
        """The condition of a soak that goes on and may undo the active revision; None: no soak goes on."""
        return None

    def wait_with(self, condition: Statement, effects: Effects | None = None, *, stalled: bool = False) -> Self:
        """Return the progress of a step that cannot go on, with the condition that says why."""
        return replace(self.with_condition(condition, effects), waits=True, stalled=stalled)

    def after_round(self, round: Round) -> Self:
        """Return the progress of a step that took the candidates through a stage."""
        progress = replace(self.with_condition(round.condition, round.effects), attempts=round.attempts)
        if round.condition.status:
            return progress
        return replace(progress, waits=True, stalled=round.has_failed, again_after=round.again_after)

    def with_condition(self, condition: Statement, effects: Effects | None = None) -> Self:
        """Return the progress with one more condition."""
        return replace(self, conditions=(*self.conditions, condition), effects=self.effects + (effects or Effects()))

    def advance_to(self, kind: type[T], **values: Any) -> T:
        """Return the progress as ``kind``, the type of the next steps. ``values``: the fields that this step sets."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)} | values)


def or_spare(context: Context, progress: P) -> P:
    """Return the progress with what is tried in place of candidates that all failed, if there is anything."""
    *before, failed = progress.conditions
    if failed.reason is not Reason.ALL_CANDIDATES_FAILED or context.spare in (None, context.resolved):
        return progress
    message = f"the models' next candidates are tried, because {failed.message}"
    condition = Statement(failed.type, None, Reason.WAITING, message)
    return replace(progress, conditions=(*before, condition), stalled=False, resolved=context.spare)


def step(progress_type: type[P], action: Callable[[Context, P], Progress]) -> Callable[[Context, Progress], Progress]:
    """Return ``action`` as a step of the flow. ``progress_type``: what the steps before it must have reached."""

    def take_step(context: Context, progress: Progress) -> Progress:
        assert isinstance(progress, progress_type)
        return action(context, progress)

    return take_step
