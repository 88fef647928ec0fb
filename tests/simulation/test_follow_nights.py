"""Thirty nights of six models, ten of them bad: what is good serves by the morning, and nothing else ever does."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.registry import URIS, Model, Registry, following, until
from triton_converters.contract.reasons import Reason

NIGHTS = 30
LOOK_HOURS = 8.9
"""Hours in which there is one look: the interval, and by how much it may be late."""


@dataclass
class Night:
    """One night of one object."""

    cluster: Cluster
    registry: Registry
    number: int
    allowed: set[str]
    """The versions that may ever serve."""

    @property
    def version(self) -> str:
        """What this night's training pushes."""
        return f"v{self.number}"

    def push(self, model: Model = Model()) -> None:  # noqa: B008 - it cannot be changed
        """The training's model is there."""
        self.registry.models[self.version] = model
        self.registry.offers = self.version

    def sleep(self, hours: float) -> None:
        """Time passes; at each pass what answers is one of those that may."""
        until(self.cluster, self.cluster.now + timedelta(hours=hours), self._look)

    def _look(self, cluster: Cluster) -> None:
        served = self.registry.served(cluster)
        assert served in self.allowed | {""}, f"night {self.number}: {served} answers"

    def ends_with(self, version: str, reason: str = "", status: str = "False") -> None:
        """In the morning this version serves; with a reason, UpToDate has it, and what serves is older."""
        cluster = self.cluster
        assert self.registry.served(cluster) == cluster.status["source"]["serving"]["version"] == version
        newest = cluster.condition("UpToDate")
        expected = (status, reason) if reason else ("True", "Ready")
        assert (newest["status"], newest["reason"]) == expected, newest["message"]
        assert cluster.condition("Ready")["status"] == "True"


def good(night: Night) -> None:
    """Nothing is wrong."""
    night.allowed.add(night.version)
    night.push()
    night.sleep(24)
    night.ends_with(night.version)


def refused(model: Model, reason: Reason) -> Callable[[Night, str], None]:
    """A model that a gate refuses."""

    def bad(night: Night, before: str) -> None:
        night.push(model)
        night.sleep(24)
        night.ends_with(before, reason)
        told = night.cluster.condition("UpToDate")["message"]
        assert f"tag {night.version}, found at " in told

    return bad


def half_a_push(night: Night, before: str) -> None:
    """One look finds half of the files, the next one all of them."""
    night.registry.models[f"{night.version}-half"] = Model(is_whole=False)
    night.registry.offers = f"{night.version}-half"
    night.sleep(LOOK_HOURS)
    good(night)


def flaps(night: Night, before: str) -> None:
    """The alias goes back and forth between this night's model and the one before, at every look."""
    night.allowed.add(night.version)
    night.push()
    night.sleep(LOOK_HOURS)
    for version in (before, night.version, before):
        moves = night.cluster.story.count("promotion")
        night.registry.offers = version
        night.sleep(LOOK_HOURS)
        assert night.cluster.story.count("promotion") <= moves + 1
    good(night)


def away_for_two_nights(night: Night, before: str) -> None:
    """The registry does not answer, and answers again after two nights."""
    night.registry.models[night.version] = Model()
    night.registry.offers = night.version
    night.registry.away_with(Reason.SOURCE_UNREACHABLE)
    night.sleep(48)
    night.ends_with(before, Reason.SOURCE_UNREACHABLE, "Unknown")
    night.registry.away = None
    good(night)


def expired_credential(night: Night, before: str) -> None:
    """The registry refuses the credential for a night."""
    night.push()
    night.registry.away_with(Reason.SOURCE_ACCESS_DENIED)
    night.sleep(24)
    night.ends_with(before, Reason.SOURCE_ACCESS_DENIED, "Unknown")
    night.registry.away = None
    good(night)


def older_again(night: Night, before: str) -> None:
    """The alias points to the version of two nights before, which serves again without a Job of its own."""
    older = [each.removeprefix("v") for each in night.allowed if each != before]
    back = f"v{max(map(int, older))}"
    started = list(night.cluster.story)
    night.registry.offers = back
    night.sleep(24)
    night.ends_with(back)
    assert {*night.cluster.story[len(started) :]} <= {"look", "server", "promotion"}


def slow_slide(night: Night, before: str) -> None:
    """Each night is a little worse than the one before, so little that chance hides it; the anchor does not slide."""
    accuracy = 0.9
    for step in range(8):
        accuracy -= 0.004
        each = Night(night.cluster, night.registry, night.number * 100 + step, night.allowed)
        if accuracy < 0.9 - 0.01:
            refused(Model(accuracy), Reason.WORSE_THAN_BEFORE)(each, before)
            return
        each.allowed.add(each.version)
        each.push(Model(accuracy))
        each.sleep(24)
        before = each.version
        each.ends_with(before)
    raise AssertionError("the slide was not noticed")


BAD: dict[int, Callable[[Night, str], None]] = {
    3: refused(Model(accuracy=0.1), Reason.THRESHOLD_NOT_MET),
    6: half_a_push,
    9: refused(Model(outputs=12), Reason.AWAITING_APPROVAL),
    12: refused(Model(is_finite=False), Reason.REFERENCE_NOT_FINITE),
    15: refused(Model(p99=50_000), Reason.CONSTRAINTS_NOT_MET),
    18: flaps,
    20: away_for_two_nights,
    23: expired_credential,
    25: older_again,
    28: slow_slide,
}
"""The ten bad nights, by their number."""


def take(scheme: str, nights: Iterable[int]) -> None:
    """Follow a source of that scheme through these nights."""
    cluster, registry = following(scheme, interval="8h")
    allowed = {"v0"}
    registry.offers = "v0"
    began = cluster.now
    first = Night(cluster, registry, 0, allowed)
    first.sleep(24)
    first.ends_with("v0")
    for number in nights:
        night = Night(cluster, registry, number, allowed)
        bad = BAD.get(number)
        if bad is None:
            good(night)
        else:
            bad(night, registry.served(cluster))
    # No look is made twice, and none is left out.
    days = (cluster.now - began) / timedelta(days=1)
    assert days * 24 / LOOK_HOURS - 1 <= len(registry.looked) <= days * 3 + 1


@pytest.mark.parametrize(("scheme", "nights"), [("mlflow", BAD), ("s3", (6, 18, 25))], ids=["exact", "by two looks"])
def test_bad_nights_one_after_the_other(scheme: str, nights: Iterable[int]) -> None:
    take(scheme, nights)


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", URIS)
def test_thirty_nights_of_a_model(scheme: str) -> None:
    take(scheme, range(1, NIGHTS + 1))
