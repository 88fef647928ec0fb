"""How far the flow came in a pass: what plan.py gathers and report.py tells. Pure."""

from dataclasses import dataclass

from triton_converters.contract.results import ReferenceResult, SourceResult
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import Choice
from triton_operator.stages.searching import Search
from triton_operator.stages.serving import Rollout
from triton_operator.stages.step import Effects, Verdict


@dataclass(frozen=True)
class Progress:
    """How far the flow came in this pass."""

    verdicts: tuple[Verdict, ...]
    effects: Effects
    attempts: tuple[Attempt, ...]
    source: SourceResult | None = None
    reference: ReferenceResult | None = None
    ranking: tuple[Choice, ...] = ()
    searches: tuple[Search, ...] = ()
    rollout: Rollout | None = None
    stalled: bool = False
