"""Deleted while the operator is away or gone: the garbage collector does it all."""

import time
from collections.abc import Iterator

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.install import NAMESPACE, RELEASE, install
from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import Place, all_at_once, left, operator_away
from tests.conftest import Fault
from tests.e2e.applied import Applied
from triton_operator.resources.server import GRACE_SECONDS

GONE_SECONDS = GRACE_SECONDS + 10
SERVING = ("doomed", "orphaned")


@pytest.fixture(scope="module")
def serving(place: Place) -> list[Applied]:
    """Two objects that serve."""
    objects = [place.new(name) for name in SERVING]
    all_at_once(*(lambda each=each: each.wait_ready(each.apply()) for each in objects))
    return objects


@pytest.fixture
def reinstalled(place: Place) -> Iterator[None]:
    """The operator is there again afterwards."""
    yield
    install(place.kubectl.kubeconfig)


def seconds_until_gone(place: Place, *deployments: str) -> float:
    """From `kubectl delete` until nothing of them is left, claims included."""
    began = time.monotonic()
    place.kubectl.delete("td", *deployments, wait=False)
    eventually(lambda: left(place.kubectl, *deployments) == [], GONE_SECONDS)
    return time.monotonic() - began


def test_deleted_while_the_operator_is_away(place: Place, serving: list[Applied], fault: Fault) -> None:
    """One serves, one has a Job that runs."""
    what = "deleted while the operator is away"
    fault(what, 2)
    working = place.new("working")
    working.apply()
    eventually(lambda: working.jobs("convert"), 120)
    with operator_away(place):
        seconds = seconds_until_gone(place, serving[0].name, working.name)
    fault(what, 2, f"all gone after {seconds:.0f} s; the pods' grace is {GRACE_SECONDS} s")


@pytest.mark.usefixtures("reinstalled")
def test_the_operator_is_uninstalled_first(place: Place, serving: list[Applied], fault: Fault) -> None:
    what = "operator uninstalled, then the object deleted"
    fault(what)
    TargetCluster(place.kubectl.kubeconfig).run("helm", "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
    assert serving[1].children("deployments"), "it serves without its operator"
    seconds = seconds_until_gone(place, serving[1].name)
    fault(what, 1, f"all gone after {seconds:.0f} s; the pods' grace is {GRACE_SECONDS} s")
