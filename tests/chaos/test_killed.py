"""Killed after the N-th write, for every N from a new object to Ready: the same end, and no Job twice.

For every N in this process: what the operator knows is thrown away between two writes, as SIGKILL does. For five N,
drawn anew each time, as real processes.
"""

import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.node import Node
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import children, condition, kinds
from tests.chaos.mortal import counted
from tests.conftest import Fault
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.kinds import ALL
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store
from triton_operator.settings import Settings

JSON = dict[str, Any]
TWO = changed(
    MINIMAL,
    {
        "spec.metrics": {"entrypoint": "metrics.py"},
        "spec.models.0.candidates": [
            {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"},
            {"name": "trace-fp32", "format": "ts-trace", "precision": "fp32"},
        ],
    },
)
STAGES = sorted(["source", "reference", "metrics", "measure onnx-fp32"])
CANDIDATES = sorted(f"{stage} {name}" for stage in ("convert", "profile") for name in ("onnx-fp32", "trace-fp32"))
SETTINGS = Settings("converter:test", "server:test", "converter-tensorflow:test")
READY_SECONDS = 120
NEVER = 10**6


class Killed(BaseException):
    """No `except Exception` sees it."""


class Lives:
    """One TritonDeployment in a namespace of its own, brought to Ready by operators that die."""

    def __init__(self, kubectl: Kubectl, cluster: Cluster) -> None:
        self.kubectl = kubectl
        self._cluster = cluster
        self._key = Key(kubectl.namespace, "digits")

    def bring_to_ready(self, *deaths: int) -> tuple[int, JSON]:
        """Each operator but the last dies after so many writes. All writes, and the end."""
        self.kubectl("create", "-f", "-", body=TWO)
        writes = 0
        with Node(self.kubectl) as node:
            for left in (*deaths, NEVER):
                mortality.left = left
                try:
                    self._live()
                except Killed:
                    writes += left
                else:
                    writes += left - mortality.left
            assert sorted(node.ended) == sorted([*STAGES, *CANDIDATES]), "no Job runs twice"
        return writes, end(self.kubectl)

    def _live(self) -> None:
        """As one process: from full lists to an object at rest."""
        store = Store()
        reconciler = Reconciler(self._cluster, store, SETTINGS, Metrics())
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            for kind in ALL:
                store.replace(kind, self._key.namespace, *self._cluster.list_all(kind, self._key.namespace))
            while reconciler.reconcile(self._key).again_after == 0:
                continue
            if condition_of(store.owner(self._key) or {}, "Ready") == "True":
                return
            time.sleep(0.02)
        raise AssertionError(f"{self._key} is not Ready after {READY_SECONDS} s")


mortality = threading.local()


def die() -> None:
    """Of the thread that wrote."""
    mortality.left -= 1
    if mortality.left == 0:
        raise Killed


def condition_of(body: JSON, type: str) -> str:
    return next((each["status"] for each in body.get("status", {}).get("conditions", []) if each["type"] == type), "")


def end(kubectl: Kubectl) -> JSON:
    """What there is at the end, without times, uids, and what is made of them.

    Events are left out: one is posted once its status is written, and a death in between loses it.
    """
    status = kubectl.get("td", "digits")["status"]
    return {
        "conditions": [(each["type"], each["status"], each["reason"]) for each in status["conditions"]],
        "candidates": [{**each, "revision": ""} for each in status["candidates"]],
        "performance": {**status["performance"], "measuredAt": ""},
        "accuracy": status["accuracy"],
        "images": status["images"],
        "children": kinds(children(kubectl)),
    }


def a_life(name: str, cluster: Cluster, admin: Kubectl) -> Lives:
    admin("create", "namespace", name)
    return Lives(admin.within(name), cluster)


def test_killed_after_every_write(
    apiserver: ApiServer, cluster_kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    fault("killed after the N-th write, every N")
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    cluster = Cluster.connect()
    with counted(die):
        writes, undisturbed = a_life("killed-never", cluster, cluster_kubectl).bring_to_ready()
        assert ("Ready", "True", "Ready") in undisturbed["conditions"]

        def killed_after(number: int) -> JSON:
            life = a_life(f"killed-{number}", cluster, cluster_kubectl)
            _, found = life.bring_to_ready(number)
            life.kubectl("delete", "td", "digits")
            return found

        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(killed_after, range(1, writes + 1)))
        assert [number for number, found in enumerate(ends, 1) if found != undisturbed] == []
        _, found = a_life("killed-often", cluster, cluster_kubectl).bring_to_ready(*[1] * (writes // 2))
        assert found == undisturbed
    fault("killed after the N-th write, every N", writes, "same end, no Job twice")


@pytest.mark.chaos
def test_processes_killed_after_some_writes(
    operator_kubeconfig: Path, cluster_kubectl: Kubectl, tmp_path: Path, fault: Fault
) -> None:
    numbers = sorted(random.sample(range(1, 40), 5))
    fault("SIGKILL after the N-th write", len(numbers), f"N = {numbers}")
    for number in numbers:
        cluster_kubectl("create", "namespace", f"process-{number}")
        dies_and_is_inherited(number, operator_kubeconfig, cluster_kubectl.within(f"process-{number}"), tmp_path)


def dies_and_is_inherited(number: int, kubeconfig: Path, kubectl: Kubectl, folder: Path) -> None:
    mortal = Operator(kubeconfig, folder / f"mortal-{number}")
    mortal.argv = (sys.executable, "-m", "tests.chaos.mortal", str(number))
    with Node(kubectl) as node:
        with mortal:
            kubectl("create", "-f", "-", body=TWO)
            eventually(lambda: mortal.ended() == -signal.SIGKILL, READY_SECONDS)
        with Operator(kubeconfig, folder / f"heir-{number}"):
            eventually(lambda: condition(kubectl, "Ready").get("status") == "True", READY_SECONDS)
        assert sorted(node.ended) == sorted([*STAGES, *CANDIDATES]), number
    kubectl("delete", "td", "--all")
