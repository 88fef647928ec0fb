"""Objects of two namespaces measure in turn: never two on the node, and who waits says so."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hack.deploy.install import install
from tests.e2e import smallest
from tests.e2e.kubectl import Kubectl
from triton_operator import names
from triton_operator.observed.turn import MEASURING

NAMESPACES = {"turns-many": 2, "turns-one": 1}
"""Objects by namespace."""
SECONDS = 900
"""How long three small objects may take to serve, one after the other."""


@pytest.fixture
def in_turn(installed: str, kubeconfig: Path, values: Mapping[str, Any], cluster: Kubectl) -> Iterator[Kubectl]:
    """The installation as it is by default: one Job measures on a node."""
    install(kubeconfig, {**values, "measurements": {"perNode": 1}})
    yield cluster
    for namespace in NAMESPACES:
        cluster.run("delete", "namespace", namespace, "--ignore-not-found", timeout=180)
    install(kubeconfig, values)


def apply(cluster: Kubectl) -> None:
    """Make the namespaces with their objects."""
    for namespace, count in NAMESPACES.items():
        cluster.run("create", "namespace", namespace)
        own = cluster.within(namespace)
        own.apply(smallest.files())
        for number in range(count):
            own.apply({**smallest.smallest(), "metadata": {"name": f"object-{number}"}})


def measuring(cluster: Kubectl) -> list[str]:
    """The pods in these namespaces that measure now."""
    selector = f"{names.STAGE_LABEL} in ({', '.join(MEASURING)})"
    pods = cluster.items("pods", "--all-namespaces", f"--selector={selector}")
    return [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in pods
        if each["metadata"]["namespace"] in NAMESPACES
        and "nodeName" in each["spec"]
        and each["status"]["phase"] not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in each["metadata"]
    ]


def conditions(cluster: Kubectl) -> list[dict[str, Any]]:
    """All conditions of the objects in these namespaces."""
    objects = [each for namespace in NAMESPACES for each in cluster.within(namespace).items("td")]
    return [each for found in objects for each in found.get("status", {}).get("conditions", [])]


def test_never_do_two_measure_and_each_says_what_it_waits_for(in_turn: Kubectl) -> None:
    apply(in_turn)
    seen, told, deadline = set[str](), set[str](), time.monotonic() + SECONDS
    while True:
        now = measuring(in_turn)
        assert len(now) <= 1, now
        seen.update(each.partition("/")[0] for each in now)
        found = conditions(in_turn)
        told.update(each["message"] for each in found if each["reason"] == "Queued")
        ready = [each for each in found if (each["type"], each["status"]) == ("Ready", "True")]
        if len(ready) == sum(NAMESPACES.values()):
            break
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    assert seen == set(NAMESPACES)
    assert any("waits for its turn to be measured, place 1 of" in each for each in told), told
