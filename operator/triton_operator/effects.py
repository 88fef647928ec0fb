"""What a pass wants of the cluster, and the conditions that say so. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import ConditionType
from triton_operator.observed.active import Active
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.flips import Flip


@dataclass(frozen=True)
class Verdict:
    """A condition without its time."""

    type: ConditionType
    status: bool | None
    """None: Unknown."""
    reason: Reason
    message: str


@dataclass(frozen=True)
class Effects:
    """What a stage wants of the cluster."""

    objects: tuple[dict[str, Any], ...] = ()
    needed: frozenset[str] = frozenset()
    """Names of the records the stage reads."""
    jobs: frozenset[str] = frozenset()
    """Names of the Jobs that stay, finished ones too: any other is deleted."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """The failures of the plan, by the name of the Job that failed or of the record whose figures did."""
    damaged: Mapping[str, Damage] = field(default_factory=dict)
    """The revisions that were found damaged in this pass, by their keys."""
    flips: Mapping[str, Flip] = field(default_factory=dict)
    """The changes of the active revision that are new, or got a verdict, in this pass, by the Deployment's uid."""
    active: Active | None = None
    """The Deployment that is active from this pass on; None: nothing changes."""

    def __add__(self, other: "Effects") -> "Effects":
        """Return what two stages want together; where both record something of one thing, ``other`` decides."""
        return Effects(
            self.objects + other.objects,
            self.needed | other.needed,
            self.jobs | other.jobs,
            {**self.failures, **other.failures},
            {**self.damaged, **other.damaged},
            {**self.flips, **other.flips},
            other.active or self.active,
        )
