"""The cluster takes pods away: evictions, a drained node, a kubelet that does not answer."""

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from hack.devcluster.paths import cluster_paths
from hack.devcluster.process import recorded_processes
from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import Place, evict, server_pods, told
from tests.conftest import Fault
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, Object

PROMPTLY_SECONDS = 10.0
"""From what happens to the reason that says so."""
BACK_SECONDS = 120.0
NOT_READY_SECONDS = 120.0
"""Kubernetes waits 50 s for a silent kubelet."""


@pytest.fixture(scope="module")
def serving(place: Place) -> Applied:
    """An object that serves, and serves again after each test."""
    applied = place.new("disturbed")
    applied.wait_ready(applied.apply())
    return applied


@pytest.fixture
def kubelet() -> Iterator[int]:
    """Its process; whatever happens, it goes on afterwards."""
    found = [each.pid for each in recorded_processes(cluster_paths().processes) if each.name == "kubelet"]
    assert found, "this test stops the kubelet of the development cluster, and KUBECONFIG names another"
    yield found[0]
    os.kill(found[0], signal.SIGCONT)


def ready_again(applied: Applied, since: float) -> float:
    """Seconds from then until it was Ready after it was not."""

    def again() -> float | None:
        later = [each for each in applied.watch.history(applied.kubectl.namespace, applied.name) if each.time >= since]
        lost = any(not each.state.holds("Ready") for each in later)
        return later[-1].time - since if lost and later[-1].state.holds("Ready") else None

    return eventually(again, BACK_SECONDS) or 0.0


def test_a_server_is_evicted(place: Place, serving: Applied, fault: Fault) -> None:
    fault("server's pod evicted")
    jobs = serving.jobs()
    (pod,) = server_pods(serving)
    since = time.time()
    evict(place.kubectl, pod["metadata"]["name"])
    seconds = told(serving, "Available", "Evicted", since, PROMPTLY_SECONDS).time - since
    back = ready_again(serving, since)
    assert serving.jobs().keys() == jobs.keys()
    fault("server's pod evicted", 1, f"Evicted after {seconds:.1f} s, Ready again after {back:.0f} s, no Job")


def test_a_jobs_pod_is_evicted(place: Place, fault: Fault) -> None:
    fault("convert Job's pod evicted")
    applied = place.new("evicted")
    generation = applied.apply()
    (pod,) = eventually(lambda: running(applied, "convert"), 120)
    since = time.time()
    evict(place.kubectl, pod["metadata"]["name"])
    seconds = told(applied, "Converted", "Evicted", since, PROMPTLY_SECONDS).time - since
    applied.wait_ready(generation)
    (job,) = applied.jobs("convert").values()
    assert job["status"]["succeeded"] == 1
    assert "failed" not in job["status"], "no try was used up"
    place.kubectl.delete("td", applied.name)
    fault("convert Job's pod evicted", 1, f"Evicted after {seconds:.1f} s, then Ready; no try used up")


def running(applied: Applied, stage: str) -> list[Object]:
    """The pods of a stage in which a container runs; while those with user code run in turn, a pod is Pending."""
    return [pod for pod in applied.children("pods", stage=stage) if any("running" in state for state in states(pod))]


def states(pod: Object) -> list[Object]:
    """The state of each container that has one."""
    status = pod["status"]
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return [container["state"] for container in containers]


def test_the_node_is_drained(place: Place, serving: Applied, fault: Fault) -> None:
    fault("node drained")
    (node,) = place.kubectl.run("get", "nodes", "--output=name").split()
    selector = f"--pod-selector=triton-operator.dev/deployment={serving.name}"
    since = time.time()
    try:
        place.kubectl.run("cordon", node)
        place.kubectl.run("drain", node, selector, "--delete-emptydir-data", "--force", "--timeout=90s", timeout=100)
        found = told(serving, "Available", "Unschedulable", since, PROMPTLY_SECONDS)
        assert "unschedulable" in found.state.condition("Available")["message"]
    finally:
        place.kubectl.run("uncordon", node)
    uncordoned = time.time()
    ready_again(serving, since)
    back = time.time() - uncordoned
    fault("node drained", 1, f"Unschedulable after {found.time - since:.1f} s; Ready {back:.0f} s after it is back")


def test_the_kubelet_does_not_answer(place: Place, serving: Applied, kubelet: int, fault: Fault) -> None:
    fault("node NotReady: kubelet stopped, then woken")
    jobs, since = serving.jobs(), time.time()
    os.kill(kubelet, signal.SIGSTOP)
    found = told(serving, "Available", "NodeNotReady", since, NOT_READY_SECONDS)
    seconds = found.time - lost_at(place.kubectl, serving)
    os.kill(kubelet, signal.SIGCONT)
    woken = time.time()
    ready_again(serving, since)
    back = time.time() - woken
    assert seconds <= PROMPTLY_SECONDS
    assert serving.jobs().keys() == jobs.keys()
    fault(
        "node NotReady: kubelet stopped, then woken",
        1,
        f"NodeNotReady {seconds:.1f} s after the pod's event; Ready {back:.0f} s after it wakes, no Job",
    )


def lost_at(kubectl: Kubectl, applied: Applied) -> float:
    """When the node controller said of the server's pod that its node is not ready; seconds since the epoch."""
    (pod,) = server_pods(applied)
    field = f"--field-selector=involvedObject.uid={pod['metadata']['uid']},reason=NodeNotReady"
    events = json.loads(kubectl.run("get", "events", field, "--output=json"))["items"]
    return max(datetime.fromisoformat(event["lastTimestamp"]).timestamp() for event in events)
