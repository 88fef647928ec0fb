"""What becomes of replicas and work on several nodes, and when one of them is lost."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hack.devcluster.addresses import BUSYBOX_IMAGE
from hack.devcluster.nodes import Node
from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import server_pods, told
from tests.conftest import Fault
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, KubectlError, Object
from tests.nodes.conftest import Place
from tests.nodes.losing import give_back, lose
from tests.nodes.objects import ONE_NODE, SHARED, a_graph, a_slow_model

NOTICED_SECONDS = 120.0
"""Kubernetes waits 50 s for a silent kubelet."""
MOVED_SECONDS = 180.0
WORK_SECONDS = 300.0


def nodes_of(applied: Applied) -> set[str]:
    """The nodes of its servers that are ready."""
    return {pod["spec"]["nodeName"] for pod in server_pods(applied) if is_ready(pod)}


def is_ready(pod: Object) -> bool:
    """Whether the cluster believes that the pod answers."""
    return any((each["type"], each["status"]) == ("Ready", "True") for each in pod["status"].get("conditions", []))


def running_on(applied: Applied, stage: str, node: str) -> bool:
    """Whether a pod of the stage works on the node."""
    for pod in applied.children("pods", stage=stage):
        status = pod["status"]
        states = [
            each["state"] for each in status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
        ]
        if pod["spec"].get("nodeName") == node and any("running" in state for state in states):
            return True
    return False


@dataclass(frozen=True)
class Two:
    """Two objects that were applied at once and are Ready."""

    spread: Applied
    """On a claim of all nodes."""
    bound: Applied
    """On a claim of one node."""
    """The pods of their measurements."""


@pytest.fixture(scope="module")
def two(place: Place) -> Two:
    """Several replicas each."""
    spread = place.new("spread", a_graph(SHARED, replicas=3, points=2))
    bound = place.new("bound", a_graph(ONE_NODE, replicas=2, points=3))
    generations = [each.apply() for each in (spread, bound)]
    for each, generation in zip((spread, bound), generations, strict=True):
        each.wait_ready(generation)
    return Two(spread, bound)


def test_pods_and_services_of_all_nodes_are_reached_as_policies_allow(place: Place, fault: Fault) -> None:
    what = "a policy on each of three nodes"
    fault(what, 3)
    ask = "nc -w 3 {} 8080 < /dev/null"
    for node in place.nodes:
        place.kubectl.apply(a_pod(f"web-{node.number}", node.name, "echo here | nc -l -p 8080"))
    place.kubectl.run("wait", "--for=condition=Ready", "pod", "--selector=app=web", "--timeout=60s")
    addresses = {node.number: place.kubectl.get("pod", f"web-{node.number}")["status"]["podIP"] for node in place.nodes}
    answers = {
        (one, other): answer(place.kubectl, f"web-{one}", ask.format(address))
        for one in addresses
        for other, address in addresses.items()
    }
    assert set(answers.values()) == {"here"}, answers
    closed = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"}}
    place.kubectl.apply(policy | {"spec": closed})
    time.sleep(3)
    others = {pair: answer(place.kubectl, f"web-{pair[0]}", ask.format(addresses[pair[1]])) for pair in answers}
    assert {said for (one, other), said in others.items() if one != other} == {""}, others
    place.kubectl.delete("networkpolicy", "closed")
    place.kubectl.delete("pod", *(f"web-{number}" for number in addresses))
    fault(what, 3, "9 of 9 ways open without it, all ways between nodes closed with it")


def a_pod(name: str, node: str, command: str) -> Object:
    """A pod on that node that runs a command again and again."""
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"while true; do {command}; done"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0},
    }


def answer(kubectl: Kubectl, pod: str, command: str) -> str:
    """What the command printed; empty where it failed."""
    try:
        return kubectl.execute(pod, "sh", "-c", command).strip()
    except KubectlError:
        return ""


def test_replicas_spread_over_the_nodes_if_the_claim_allows(two: Two, fault: Fault) -> None:
    what = "3 replicas on a ReadWriteMany claim"
    fault(what)
    eventually(lambda: len(nodes_of(two.spread)) == 3, MOVED_SECONDS)
    assert "one node" not in two.spread.state.condition("Available")["message"]
    fault(what, 1, "on 3 nodes")


def test_replicas_on_a_claim_of_one_node_say_so(two: Two, fault: Fault) -> None:
    what = "2 replicas on a ReadWriteOnce claim"
    fault(what)
    bound = two.bound
    eventually(lambda: sum(map(is_ready, server_pods(bound))) == 2, MOVED_SECONDS)
    assert len(nodes_of(bound)) == 1
    assert "all its pods run on one node" in bound.state.condition("Available")["message"]
    fault(what, 1, "on 1 node; Available says so")


@dataclass(frozen=True)
class Loss:
    """A node that was lost, and the objects that it worked for."""

    victim: Node
    since: float
    serving: Applied
    converting: Applied
    profiling: Applied


@pytest.fixture(scope="module")
def loss(place: Place, two: Two) -> Iterator[Loss]:
    """One node is lost while it serves, converts and profiles. The tests that follow look at it."""
    victim = place.nodes[-1]
    profiling = place.new("profiling", a_graph(SHARED, points=16, prefers=victim.name))
    converting = place.new("converting", a_slow_model(SHARED, prefers=victim.name))
    for each in (converting, profiling):
        each.apply()

    def busy() -> bool:
        return running_on(profiling, "profile", victim.name) and running_on(converting, "convert", victim.name)

    eventually(busy, WORK_SECONDS)
    assert victim.name in nodes_of(two.spread)
    lose(victim)
    yield Loss(victim, time.time(), two.spread, converting, profiling)
    give_back(victim)


def test_a_node_is_lost_while_it_serves(loss: Loss, fault: Fault) -> None:
    what = "node lost while it serves 1 of 3 replicas"
    fault(what)
    serving = loss.serving
    eventually(lambda: loss.victim.name not in nodes_of(serving), NOTICED_SECONDS)
    noticed = time.time() - loss.since
    eventually(lambda: sum(map(is_ready, server_pods(serving))) == 3, MOVED_SECONDS)
    moved = time.time() - loss.since
    history = serving.watch.history(serving.kubectl.namespace, serving.name)
    assert all(each.state.holds("Ready") for each in history if each.time >= loss.since), "two replicas go on"
    seen = f"Ready throughout; not ready after {noticed:.0f} s, a third pod on another node after {moved:.0f} s"
    fault(what, 1, seen)


@pytest.mark.parametrize(
    ("name", "kind", "reason"), [("converting", "Converted", "Evicted"), ("profiling", "Verified", "NodeNotReady")]
)
def test_a_node_is_lost_while_it_works(loss: Loss, fault: Fault, name: str, kind: str, reason: str) -> None:
    """User code runs in an init container, so a pod that converts does not show that its node is silent."""
    what = f"node lost while {name}"
    fault(what)
    applied: Applied = getattr(loss, name)
    found = told(applied, kind, reason, loss.since, NOTICED_SECONDS)
    assert f"kubectl delete node {loss.victim.name}" in found.state.condition(kind)["message"]
    assert not found.state.holds("Stalled")
    fault(what, 1, f"{reason} after {found.time - loss.since:.0f} s, which says what to do; no failure")


def test_work_goes_on_when_the_node_is_back(loss: Loss, fault: Fault) -> None:
    """A Job's pod is made anew once the node has told of the end of the old one."""
    what = "that node comes back"
    fault(what)
    for each, stage in ((loss.converting, "convert"), (loss.profiling, "profile")):
        eventually(lambda each=each, stage=stage: is_asked_to_end(each, stage), MOVED_SECONDS)
    assert loss.converting.state.says("Converted", "Evicted"), loss.converting.report()
    began = time.time()
    give_back(loss.victim)
    for each in (loss.converting, loss.profiling):
        each.wait_ready(each.state.generation)
    assert loss.serving.state.holds("Ready")
    fault(what, 1, f"both Jobs run again; both objects are Ready after {time.time() - began:.0f} s")


def is_asked_to_end(applied: Applied, stage: str) -> bool:
    """Whether the cluster has asked the lost node to end the stage's pod."""
    return any("deletionTimestamp" in pod["metadata"] for pod in applied.children("pods", stage=stage))
