"""What a step of the flow returns. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from triton_converters.contract.reasons import Reason
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement

P = TypeVar("P", bound="Progress")
T = TypeVar("T", bound="Progress")


@dataclass(frozen=True)
class Round:
    """What became of candidates in one stage."""

    condition: Statement
    effects: Effects
    attempts: tuple[Attempt, ...]
    again_after: float | None = None
    """Seconds until one that failed is tried again by itself; None: none is."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the flow came. A step takes the progress of the step before it and returns its own.

    A step that goes on returns what later steps need as a type of its own; one that cannot go on returns ``waits``.
    """

    attempts: tuple[Attempt, ...]
    """Every candidate as far as it came."""
    conditions: tuple[Statement, ...] = ()
    effects: Effects = field(default_factory=Effects)
    waits: bool = False
    """No later step is taken in this pass: this one goes on, or it failed."""
    stalled: bool = False
    """This step failed, and nothing more is tried until something changes."""
    again_after: float | None = None
    """Seconds until time alone lets it go on, or says more of it; None: it does not."""

    @property
    def is_rolled_out(self) -> bool:
        """Whether a revision is on its way, or serves."""
        return False

    @property
    def is_complete(self) -> bool:
        """Whether the target revision serves and nothing of it is left to do."""
        return False

    @property
    def blocking(self) -> Statement | None:
        """What a revision that is on its way waits for or failed at; None: nothing, or none is on its way."""
        return None

    @property
    def soaks(self) -> Statement | None:
        """The condition of a soak that goes on and may undo the active revision; None: none does."""
        return None

    def wait_with(self, condition: Statement, effects: Effects | None = None, *, stalled: bool = False) -> Self:
        """Return the progress of a step that cannot go on, with the condition that says why."""
        return replace(self.with_condition(condition, effects), waits=True, stalled=stalled)

    def after_round(self, round: Round) -> Self:
        """Return the progress of a step that took the candidates through a stage."""
        reached = replace(self.with_condition(round.condition, round.effects), attempts=round.attempts)
        if round.condition.status:
            return reached
        failed = round.condition.reason is Reason.ALL_CANDIDATES_FAILED
        return replace(reached, waits=True, stalled=failed, again_after=round.again_after)

    def with_condition(self, condition: Statement, effects: Effects | None = None) -> Self:
        """Return the progress with one more condition."""
        return replace(self, conditions=(*self.conditions, condition), effects=self.effects + (effects or Effects()))

    def advance_to(self, kind: type[T], **found: Any) -> T:
        """Return the progress of a step that found out what ``kind`` holds besides; ``found``: that, by its fields."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)} | found)


def step(takes: type[P], go: Callable[[Context, P], Progress]) -> Callable[[Context, Progress], Progress]:
    """Return a step of the flow, which takes what the steps before it have found out."""

    def taken(context: Context, progress: Progress) -> Progress:
        assert isinstance(progress, takes)
        return go(context, progress)

    return taken
