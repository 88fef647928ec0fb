"""The next move of a trial: facts in, one move out. Pure, with a truth table as its test.

A revision is on trial before it is active (a canary), and once it is (a soak). The rows are the same ones, because the
facts say what differs:

| | Canary | Soak |
|---|---|---|
| Requests are divided by | the route: a share of them, step by step | the Service's selector: all of them |
| Active is | the other revision | the revision on trial |
| It is compared with the other one's requests | of the same time | of its own time, before the move |
| The way back | the share ends | the Service moves back |
| If no GPU is spare for both | the Service moves without a trial | there is none, as the record of the move says |
"""

from dataclasses import dataclass
from enum import Enum, auto

from triton_converters.contract.reasons import Reason
from triton_operator.api.rollout import OnInconclusive
from triton_operator.rollout.traffic import SoakVerdict


class TrialStage(Enum):
    """The stage of a trial, as recorded."""

    BEFORE = auto()
    """No trial of this revision is recorded."""
    RUNS = auto()
    """A soak, or a step of a canary, goes on."""
    OVER = auto()
    """A soak has its verdict; all steps of a canary are over, or the Service's move is recorded."""


class TrialVerdict(Enum):
    """The verdict on the revision by what was found so far."""

    NOTHING = auto()
    """There is no verdict yet."""
    PASSED = auto()
    FAILED = auto()
    UNCLEAR = auto()
    """The revision cannot be judged yet; later requests count together with those so far."""
    SPOILED = auto()
    """The revision cannot be judged by the counters from the beginning, so only later requests count."""

    @classmethod
    def of(cls, verdict: SoakVerdict | None) -> "TrialVerdict":
        """Return the fact that a verdict is; None: there is none yet."""
        if verdict is None:
            return cls.NOTHING
        unclear = cls.SPOILED if verdict.spoiled else cls.UNCLEAR
        return {Reason.SOAK_PASSED: cls.PASSED, Reason.SOAK_FAILED: cls.FAILED}.get(verdict.reason, unclear)


@dataclass(frozen=True)
class TrialFacts:
    """Everything that decides the next move of a trial."""

    enabled: bool
    """Whether the spec asks for one, and the cluster has what leads requests to the revision."""
    stage: TrialStage
    may_begin: bool = False
    """Whether a trial that is not recorded may begin: the server is ready, or the record of a soak was lost."""
    ends: bool = False
    """Whether nothing more can be compared: the other revision is gone or down for long, or makes way for a third."""
    restored: bool = False
    """Whether the revision's Deployment was deleted and made again since its requests count."""
    verdict: TrialVerdict = TrialVerdict.NOTHING
    policy: OnInconclusive = "Hold"
    """What the spec wants done without a verdict."""
    answers: bool = False
    """Whether a pod of the revision is ready."""


class TrialMove(Enum):
    """The next move of a trial."""

    NONE = auto()
    """There is no trial."""
    AWAIT = auto()
    """A trial cannot begin yet."""
    BEGIN = auto()
    """The trial is recorded."""
    STAND = auto()
    """The soak stands as it was judged; a canary passed, so the Service moves, and the share stays until then."""
    END = auto()
    """The trial ends without a verdict: the revision stays, or the Service moves to it."""
    GO_ON = auto()
    """The soak, or the present step, goes on."""
    PASS = auto()
    """The revision stays, or gets its next share."""
    UNDO = auto()
    """The previous revision is active again, or stays so."""
    HOLD = auto()
    """The trial goes on past its time, and is judged again with the requests that come until then."""
    BEGIN_ANEW = auto()
    """The trial goes on past its time, and only requests from now on count."""


GOES_ON = frozenset({TrialMove.BEGIN, TrialMove.GO_ON, TrialMove.PASS, TrialMove.HOLD, TrialMove.BEGIN_ANEW})
"""The moves after which a canary goes on."""


def first_verdict(
    restart: SoakVerdict | None, early_end: SoakVerdict | None, outage: SoakVerdict | None
) -> SoakVerdict | None:
    """Return the verdict that counts of those that need no counters; None: there is none.

    A crash counts although the trial could not go on, but servers of both revisions that ended say least.
    """
    has_failed = restart is not None and restart.reason is Reason.SOAK_FAILED
    return (restart if has_failed else None) or early_end or outage or restart


def next_trial(facts: TrialFacts) -> TrialMove:
    """Return the next move of a trial; the first line that applies decides."""
    if not facts.enabled:
        return TrialMove.NONE
    if facts.stage is TrialStage.OVER:
        return TrialMove.STAND
    if facts.stage is TrialStage.BEFORE:
        return TrialMove.BEGIN if facts.may_begin else TrialMove.AWAIT
    if facts.verdict is TrialVerdict.FAILED:
        return TrialMove.UNDO
    if facts.ends:
        return TrialMove.END
    if facts.restored:
        return TrialMove.BEGIN_ANEW
    if facts.verdict is TrialVerdict.NOTHING:
        return TrialMove.GO_ON
    if facts.verdict is TrialVerdict.PASSED or facts.policy == "Continue":
        # A revision that is down is not judged by what it answered before.
        return TrialMove.PASS if facts.answers else TrialMove.GO_ON
    if facts.policy == "Undo":
        return TrialMove.UNDO
    return TrialMove.BEGIN_ANEW if facts.verdict is TrialVerdict.SPOILED else TrialMove.HOLD
