"""What a pass wants of the cluster, and the conditions that say so. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_operator.api.status import CONDITION_MESSAGE_BYTES, Condition, ConditionType, timestamp
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.following import Following
from triton_operator.observed.promotion import Promotion

_STATUSES: Mapping[bool | None, Literal["True", "False", "Unknown"]] = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True)
class Statement:
    """A condition without its time."""

    type: ConditionType
    status: bool | None
    """None: Unknown."""
    reason: Reason
    message: str


def conditions_of(
    statements: Iterable[Statement], old: Iterable[Condition], generation: int, now: datetime
) -> list[Condition]:
    """Return the statements as conditions of a generation of the spec. No other function makes a condition.

    ``old``: the conditions of the last status. One of the same type and status says when that status began; else it
    begins ``now``, which has a time zone. A message that is too long keeps its two ends.
    """
    since = {(each.type, each.status): each.last_transition_time for each in old}
    return [
        Condition(
            type=each.type,
            status=(status := _STATUSES[each.status]),
            reason=each.reason,
            message=shortened(each.message, CONDITION_MESSAGE_BYTES),
            observed_generation=generation,
            last_transition_time=since.get((each.type, status)) or timestamp(now),
        )
        for each in statements
    ]


@dataclass(frozen=True)
class AddOn:
    """What a pass wants of an object of another project's kind, for which nothing else waits."""

    condition: Statement | None = None
    """The condition that tells of it; None: the spec asks for no such object."""
    body: dict[str, Any] | None = None
    """The object; None: there should be none."""
    again_after: float | None = None
    """Seconds after which another look may find something else; None: a watch tells of it."""


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
    promotions: Mapping[str, Promotion] = field(default_factory=dict)
    """The changes of the active revision that are new, or got a verdict, in this pass, by the Deployment's name."""
    active_record: ActiveRecord | None = None
    """The Deployment that is active from this pass on; None: nothing changes."""
    missing: Mapping[str, Failure] = field(default_factory=dict)
    """The failures, by their Jobs' names, after which all results are to be forgotten: the claim still lacks some."""
    following: Following | None = None
    """What is known of the source from this pass on; None: nothing changes."""

    def __add__(self, other: "Effects") -> "Effects":
        """Return what two stages want together; where both record something of one thing, ``other`` decides."""
        return Effects(
            self.objects + other.objects,
            self.needed | other.needed,
            self.jobs | other.jobs,
            {**self.failures, **other.failures},
            {**self.damaged, **other.damaged},
            {**self.promotions, **other.promotions},
            other.active_record or self.active_record,
            {**self.missing, **other.missing},
            other.following or self.following,
        )
