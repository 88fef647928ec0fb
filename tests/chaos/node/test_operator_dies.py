"""The operator is killed after a write, five times on the real node; then everything goes on as if it had not been.

Each object is in a namespace of its own, with an operator of its own; those namespaces are deleted in the end.
"""

import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.deploy.install import RELEASE
from tests.apiserver.operator_process import Operator, eventually
from tests.chaos.node.place import OWN_CLAIM, JobsSeen, Place, all_at_once, operator_away
from tests.conftest import Fault
from tests.e2e.applied import PATIENCE_SECONDS, Applied, stage_of
from tests.e2e.configmap import DUMP
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import overlaid, read
from tests.e2e.state import State
from tests.e2e.workbench import SOURCE
from triton_operator.resources.server import GRACE_SECONDS

RUNS = 5
WRITES = range(1, 25)
"""A run of one candidate makes more."""
STAGES = ["convert", "measure", "metrics", "metrics", "profile", "reference", "source"]
"""Metrics are computed of the framework alone, and with the candidate."""
NAME = "survivor"


@dataclass(frozen=True)
class Survivor:
    """An object whose first operator was killed after so many writes."""

    number: int
    kubectl: Kubectl
    state: State
    stages: list[str]
    """Of all its Jobs, those that were deleted too."""


@pytest.fixture(scope="module")
def survivors(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Survivor]]:
    """All at once, while the operator of the cluster is away; it takes them over afterwards."""
    folder = tmp_path_factory.mktemp("operators")
    files = json.loads(place.workbench.run("python3", "-c", DUMP, SOURCE))
    numbers = sorted(random.sample(WRITES, RUNS))
    namespaces = {number: place.kubectl.within(f"{place.kubectl.namespace}-killed-{number}") for number in numbers}
    kubeconfig = account(place, folder)
    settings = environment(place)
    try:
        with operator_away(place):
            yields = all_at_once(
                *(
                    lambda number=number, kubectl=kubectl: survivor(
                        number, place, kubectl, files, kubeconfig, folder, settings
                    )
                    for number, kubectl in namespaces.items()
                )
            )
        yield yields
    finally:
        names = [kubectl.namespace for kubectl in namespaces.values()]
        place.kubectl.run("delete", "namespace", *names, "--ignore-not-found", timeout=300)


def account(place: Place, folder: Path) -> Path:
    """A kubeconfig that acts as the operator's account."""
    kubectl = place.operator()
    config = json.loads(kubectl.run("config", "view", "--raw", "--flatten", "--output=json"))
    config["users"][0]["user"] = {"token": kubectl.run("create", "token", "triton-operator", "--duration=1h").strip()}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return kubeconfig


def environment(place: Place) -> dict[str, str]:
    """The settings of the operator in the cluster, without what makes it one of several."""
    (container,) = place.operator().get("deployment", "triton-operator")["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"] if each.get("value")}
    return {name: value for name, value in given.items() if name.endswith("_IMAGE") or name == "INSTANCE_GROUP_KIND"}


def survivor(
    number: int,
    place: Place,
    kubectl: Kubectl,
    files: Object,
    kubeconfig: Path,
    folder: Path,
    settings: dict[str, str],
) -> Survivor:
    """From a new object to Ready, by an operator that dies after so many writes and by one that comes after it."""
    kubectl.run("create", "namespace", kubectl.namespace)
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "suite"}, "binaryData": files})
    base = read("classifier")
    spec = overlaid(base["spec"], OWN_CLAIM | {"source": {"uri": "configmap://suite"}})
    applied = Applied(kubectl, place.watch, base | {"spec": spec}, NAME)
    settings = settings | {"WATCH_NAMESPACES": kubectl.namespace}
    mortal = Operator(kubeconfig, folder / f"mortal-{number}", **settings)
    mortal.argv = (sys.executable, "-m", "tests.chaos.mortal", str(number))
    with JobsSeen(kubectl) as seen:
        with mortal:
            generation = applied.apply()
            eventually(lambda: mortal.ended() == -signal.SIGKILL, PATIENCE_SECONDS)
        with Operator(kubeconfig, folder / f"heir-{number}", **settings):
            state = applied.wait_ready(generation).state
        jobs = applied.jobs()
        stages = [stage_of(jobs[uid]) for uid in jobs]
        lost = sum(map(len, seen.uids.values())) - len(jobs)
    return Survivor(number, kubectl, state, sorted(stages + ["lost"] * lost))


def test_a_killed_operator_loses_nothing_on_a_real_node(survivors: list[Survivor], fault: Fault) -> None:
    numbers = [each.number for each in survivors]
    fault("SIGKILL after the N-th write, real node", RUNS, f"N = {numbers}")
    for each in survivors:
        assert each.stages == STAGES, f"N = {each.number}: every Job once"
    assert len({each.state.revision for each in survivors}) == 1, "the same result"
    fault("SIGKILL after the N-th write, real node", RUNS, f"N = {numbers}: same revision, no Job twice")


def test_namespaces_are_deleted(place: Place, survivors: list[Survivor], fault: Fault) -> None:
    """While the operator works, which may not bring back what the namespace controller deletes."""
    what = "namespace deleted while its object serves"
    fault(what, len(survivors))
    namespaces = [each.kubectl.namespace for each in survivors]
    began = time.monotonic()
    place.kubectl.run("delete", "namespace", *namespaces, "--wait=false")
    eventually(lambda: not [each for each in namespaces if place.kubectl.exists("namespace", each)], GRACE_SECONDS + 10)
    seconds = time.monotonic() - began
    log = place.operator().run("logs", f"--selector=app.kubernetes.io/name={RELEASE}", "--tail=-1")
    assert " a bug" not in log
    fault(what, len(survivors), f"gone after {seconds:.0f} s; the pods' grace is {GRACE_SECONDS} s")
