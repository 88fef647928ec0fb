"""The chart's `networkPolicy.clients`: whom servers answer. Runs after all that needs everybody to reach everybody."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.deploy.command import TargetCluster
from hack.deploy.install import CHART, NAMESPACE, RELEASE
from tests.conftest import Attack
from tests.e2e.attacks import NEIGHBOUR, Attacked, server_pods
from tests.e2e.reach import reached
from tests.e2e.suite import Suite

FRIEND = {"podSelector": {"matchLabels": {"friend": "yes"}}}
PATIENCE_SECONDS = 120.0


def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something; raises AssertionError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:.0f} s for {what}"
        time.sleep(1)


def let_in(kubeconfig: Path, *peers: object) -> None:
    """Upgrade the release: servers are for these peers, or for everybody."""
    TargetCluster(kubeconfig).run(
        "helm", "upgrade", RELEASE, CHART, "--namespace", NAMESPACE, "--reuse-values",
        "--set-json", f"networkPolicy.clients={json.dumps(peers)}", "--wait", "--timeout", "180s", timeout=240,
    )  # fmt: skip


@pytest.fixture(scope="module")
def started(attacked: Attacked, suite: Suite) -> dict[str, str]:
    """The neighbour's server pods before, with the time at which they were started."""
    return {pod["metadata"]["name"]: pod["status"]["startTime"] for pod in server_pods(suite)}


@pytest.fixture(scope="module")
def only_friends(kubeconfig: Path, started: dict[str, str], suite: Suite) -> Iterator[Suite]:
    """The installation, with servers for pods of the label only. The workbench has it; the prober does not."""
    suite.busy.run("label", "pod", suite.workbench.pod, "friend=yes")
    let_in(kubeconfig, FRIEND)

    def peers() -> list[object]:
        rules = suite.busy.get("networkpolicy", f"{NEIGHBOUR}-servers")["spec"]["ingress"]
        return [peer for rule in rules for peer in rule.get("from", [])]

    try:
        eventually("the policy of the neighbour's servers", lambda: FRIEND in peers())
        yield suite
    finally:
        let_in(kubeconfig)
        suite.busy.run("label", "pod", suite.workbench.pod, "friend-")
        eventually("the policy of the neighbour's servers", lambda: FRIEND not in peers())


@pytest.mark.parametrize("how", ["by the Service", "by the pod"])
def test_a_peer_is_answered_and_a_stranger_is_not(only_friends: Suite, attack: Attack, how: str) -> None:
    suite = only_friends
    by_service = suite.busy.get("service", NEIGHBOUR)["spec"]["clusterIP"]
    host = by_service if how == "by the Service" else server_pods(suite)[0]["status"]["podIP"]
    inference, metrics = (f"tcp={host}:8000", f"tcp={host}:8001"), f"tcp={host}:8002"
    eventually("the peer's connection", lambda: all(reached(suite.busy, suite.workbench.pod, inference).values()))
    found = reached(suite.busy, "prober", (*inference, metrics))
    attack("a stranger", f"a server with other clients, {how}", f"reached {[each for each in found if found[each]]}")
    assert found == {inference[0]: False, inference[1]: False, metrics: True}


def test_no_server_was_started_anew(only_friends: Suite, started: dict[str, str]) -> None:
    assert started == {pod["metadata"]["name"]: pod["status"]["startTime"] for pod in server_pods(only_friends)}
