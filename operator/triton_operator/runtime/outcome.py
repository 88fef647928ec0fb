"""What a pass has made of its plan, and what it tells of that. Pure.

| What was carried out | What is told |
|---|---|
| all of it | the plan's status |
| all but objects that nothing else needs | the plan's status, in which the conditions of those objects say so |
| not an object that others need | the setback: a refusal before what may pass by itself |
| a part, because the pass wrote what the next one plans by | nothing yet |
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from triton_operator.api.status import ConditionType
from triton_operator.names import Body
from triton_operator.planning import setbacks
from triton_operator.planning.plan import Plan
from triton_operator.planning.setbacks import Setback
from triton_operator.runtime.writing import Failures, Written


@dataclass(frozen=True)
class Carried:
    """A plan, and how far it was carried out."""

    plan: Plan
    whole: bool
    """Whether all steps were taken, whatever failed in them. A pass that made room or started work ends there."""
    written: Written
    failures: Failures
    """The objects that could not be written."""
    without: Mapping[ConditionType, Failures]
    """The refusals of objects of other projects' kinds, by the condition that tells of them. They stall nothing."""

    @property
    def all_failures(self) -> Failures:
        """Whatever could not be written; what others need comes first."""
        return Failures([*self.failures, *itertools.chain.from_iterable(self.without.values())])


def outcome_of(owner: Body, carried: Carried, now: datetime) -> tuple[Plan, Setback | None]:
    """Return the plan without what nothing else needs, and what kept the rest of it from being done; None: nothing.

    ``owner``: the TritonDeployment as it is stored.
    """
    # The plan took refused objects for granted, whatever else failed.
    messages = {type: str(each) for type, each in carried.without.items()}
    return setbacks.without(owner, carried.plan, messages, now), _setback(carried.failures)


def _setback(failures: Failures) -> Setback | None:
    if refused := failures.refused:
        return setbacks.apply_refused(str(refused))
    return setbacks.apply_failed(str(failures)) if failures else None
