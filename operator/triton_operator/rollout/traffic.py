"""What servers answered within a time, and whether a new revision does as well as the previous one. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters
from triton_operator.api.serving import Soak


@dataclass(frozen=True)
class Traffic:
    """Requests that were answered within a time."""

    succeeded: int = 0
    failed: int = 0
    microseconds: int = 0
    """Time that those that succeeded took together."""

    def __add__(self, other: "Traffic") -> "Traffic":
        """The requests of both."""
        return Traffic(
            self.succeeded + other.succeeded, self.failed + other.failed, self.microseconds + other.microseconds
        )

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.succeeded + self.failed

    @property
    def failed_percent(self) -> float:
        """The share of those that failed, in percent."""
        return 100 * self.failed / self.requests if self.requests else 0.0

    @property
    def latency(self) -> float:
        """The mean time of those that succeeded, in microseconds."""
        return self.microseconds / self.succeeded if self.succeeded else 0.0


@dataclass(frozen=True)
class Judgement:
    """What a soak found."""

    reason: Reason
    """SoakPassed, SoakFailed or SoakInconclusive."""
    words: str
    spoiled: bool = False
    """Whether the counters from the beginning are of no use, so that only later requests can be judged."""


def between(before: Sequence[Counters], after: Sequence[Counters]) -> dict[str, Traffic]:
    """Return what each pod of ``after`` answered since ``before``, by the pod's name.

    A pod that is not in ``before`` was started since then. Counters that fell began again with their server.
    """
    known = {each.pod: each for each in before}
    return {each.pod: _since(known.get(each.pod), each) for each in after}


def total(pods: Collection[Traffic]) -> Traffic:
    """Return the requests of all pods."""
    return sum(pods, Traffic())


def judge(asked: Soak, active: dict[str, Traffic], previous: Traffic | None, at: str = "before") -> Judgement:
    """Compare the new revision's pods with the previous revision, as a whole; None: its requests are not known.

    ``at``: when the previous revision answered its requests, in words.

    Every figure is one of at least ``minRequests`` requests: of all pods together, and of each pod that has so
    many. The worst one counts.
    """
    whole, least = total(active.values()), asked.min_requests
    if whole.requests < least:
        words = f"it answered {whole.requests} requests, and minRequests is {least}"
        return Judgement(Reason.SOAK_INCONCLUSIVE, words)
    judged = {f"pod {name}": each for name, each in active.items() if each.requests >= least}
    judged["all pods together"] = whole
    where, worst = max(judged.items(), key=lambda each: each[1].failed_percent)
    errors = f"{_percent(worst.failed_percent)} of {worst.requests} requests failed in {where}"
    if worst.failed_percent > asked.max_error_percent:
        words = f"{errors}, and maxErrorPercent is {asked.max_error_percent:g}"
        return Judgement(Reason.SOAK_FAILED, f"{words}; {_before(previous)}")
    if previous is None or previous.succeeded < least or previous.latency <= 0:
        return Judgement(Reason.SOAK_INCONCLUSIVE, f"{errors}; the mean latency is not compared: {_before(previous)}")
    where, slowest = max(judged.items(), key=lambda each: each[1].latency)
    slower = 100 * (slowest.latency / previous.latency - 1)
    latency = f"the mean latency is {_milliseconds(slowest)} in {where}, and was {_milliseconds(previous)} {at}"
    if slower > asked.max_latency_percent:
        words = f"{latency}: {_percent(slower)} more, and maxLatencyPercent is {asked.max_latency_percent}"
        return Judgement(Reason.SOAK_FAILED, words)
    return Judgement(Reason.SOAK_PASSED, f"{errors}; {latency}")


def _since(before: Counters | None, after: Counters) -> Traffic:
    whole = Traffic(after.succeeded, after.failed, after.microseconds)
    if before is None:
        return whole
    since = Traffic(
        after.succeeded - before.succeeded, after.failed - before.failed, after.microseconds - before.microseconds
    )
    return whole if min(since.succeeded, since.failed, since.microseconds) < 0 else since


def _before(previous: Traffic | None) -> str:
    if previous is None:
        return "the requests to the previous revision are not known"
    failed = f"{_percent(previous.failed_percent)} failed"
    return f"the previous revision answered {previous.requests} requests, of which {failed}"


def _percent(value: float) -> str:
    return f"{value:.3g} %"


def _milliseconds(traffic: Traffic) -> str:
    return f"{traffic.latency / 1000:.3g} ms"
