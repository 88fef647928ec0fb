"""What a step of the flow returns. Pure."""

from dataclasses import dataclass, field, replace
from typing import Self

from triton_converters.contract.reasons import Reason
from triton_operator.candidates.attempt import Attempt
from triton_operator.effects import Effects, Verdict


@dataclass(frozen=True)
class Round:
    """What became of candidates in one stage."""

    verdict: Verdict
    effects: Effects
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the flow came. A step takes the progress of the step before it and returns its own.

    A step that goes on returns what later steps need as a type of its own; one that cannot go on returns ``waits``.
    """

    attempts: tuple[Attempt, ...]
    """Every candidate as far as it came."""
    verdicts: tuple[Verdict, ...] = ()
    effects: Effects = field(default_factory=Effects)
    waits: bool = False
    """No later step is taken in this pass: this one goes on, or it failed."""
    stalled: bool = False
    """It failed, and nothing more is tried until something changes."""

    def waiting(self, verdict: Verdict, effects: Effects | None = None, *, stalled: bool = False) -> Self:
        """Return the progress of a step that cannot go on, with the condition that says why."""
        return replace(self._with(verdict, effects), waits=True, stalled=stalled)

    def after(self, round: Round) -> Self:
        """Return the progress of a step that took the candidates through a stage."""
        reached = replace(self._with(round.verdict, round.effects), attempts=round.attempts)
        if round.verdict.status:
            return reached
        return replace(reached, waits=True, stalled=round.verdict.reason is Reason.ALL_CANDIDATES_FAILED)

    def _with(self, verdict: Verdict, effects: Effects | None) -> Self:
        return replace(self, verdicts=(*self.verdicts, verdict), effects=self.effects + (effects or Effects()))
