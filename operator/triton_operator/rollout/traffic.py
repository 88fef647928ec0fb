"""The requests that servers answered between two readings of their counters, and the verdict by them. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters


@dataclass(frozen=True)
class Traffic:
    """The requests that were answered between two readings."""

    succeeded: int = 0
    failed: int = 0
    microseconds: int = 0
    """Time that the requests that succeeded took together, in microseconds."""

    def __add__(self, other: "Traffic") -> "Traffic":
        """Return the requests of both."""
        return Traffic(
            self.succeeded + other.succeeded, self.failed + other.failed, self.microseconds + other.microseconds
        )

    @property
    def requests(self) -> int:
        """The number of requests, whether they succeeded or failed."""
        return self.succeeded + self.failed

    @property
    def failed_percent(self) -> float:
        """The share of the requests that failed, in percent."""
        return 100 * self.failed / self.requests if self.requests else 0.0

    @property
    def latency(self) -> float:
        """The mean time of the requests that succeeded, in microseconds."""
        return self.microseconds / self.succeeded if self.succeeded else 0.0


@dataclass(frozen=True)
class SoakVerdict:
    """The verdict on a revision by its soak or a step of its canary."""

    reason: Reason
    """SoakPassed, SoakFailed or SoakInconclusive."""
    message: str
    spoiled: bool = False
    """Whether the counters from the beginning are of no use, so that only later requests can be judged."""


def traffic_between(before: Sequence[Counters], after: Sequence[Counters]) -> dict[str, Traffic]:
    """Return what each pod of ``after`` answered since ``before``, by the pod's name.

    A pod that is not in ``before`` was started since then. Counters that fell began again with their server.
    """
    earlier_counters = {each.pod: each for each in before}
    return {each.pod: _pod_traffic(earlier_counters.get(each.pod), each) for each in after}


def total(pods: Collection[Traffic]) -> Traffic:
    """Return the requests of all pods."""
    return sum(pods, Traffic())


def _pod_traffic(before: Counters | None, after: Counters) -> Traffic:
    all_traffic = Traffic(after.succeeded, after.failed, after.microseconds)
    if before is None:
        return all_traffic
    later_traffic = Traffic(
        after.succeeded - before.succeeded, after.failed - before.failed, after.microseconds - before.microseconds
    )
    return (
        all_traffic
        if min(later_traffic.succeeded, later_traffic.failed, later_traffic.microseconds) < 0
        else later_traffic
    )
