"""Two replicas and one Lease: killed, stopped and ended in order, with never two that write."""

import itertools
import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import NAMESPACE, USER, Operator, eventually
from tests.apiserver.test_operator import created
from tests.conftest import Fault

LEASE = f"{NAMESPACE}/triton-operator"
HANDED_OVER_SECONDS = 120.0
"""Patience: the Lease of a leader that is killed ends after 15 s, and a busy machine adds to that."""


def leads(operator: Operator) -> bool:
    return operator.metric("triton_operator_leads") == 1


def turns(apiserver: ApiServer, since: int = 0) -> list[str]:
    """Who wrote, in the order of the API server's audit log from a line on; a run of writes counts once."""
    entries = [json.loads(line) for line in apiserver.audit_log.read_text().splitlines()[since:]]
    writers = [
        entry["userAgent"].rpartition("/")[2]
        for entry in entries
        if entry["user"]["username"] == USER and entry["objectRef"]["resource"] != "leases"
    ]
    return [writer for writer, _ in itertools.groupby(writers)]


def now(apiserver: ApiServer) -> int:
    """How many lines the audit log has."""
    return len(apiserver.audit_log.read_text().splitlines())


@contextmanager
def replica(name: str, kubeconfig: Path, folder: Path) -> Iterator[Operator]:
    with Operator(kubeconfig, folder / name, LEASE=LEASE, POD_NAME=name) as operator:
        operator.wait_ready()
        yield operator


def seconds_until_the_job_of(name: str, kubectl: Kubectl) -> float:
    begun = time.monotonic()
    kubectl("create", "-f", "-", body=named(name))
    eventually(lambda: kubectl.items("jobs", "-l", f"triton-operator.dev/deployment={name}"), HANDED_OVER_SECONDS)
    return time.monotonic() - begun


@pytest.fixture
def lease(cluster_kubectl: Kubectl) -> Iterator[None]:
    """Nobody holds it."""
    yield
    cluster_kubectl.within(NAMESPACE)("delete", "lease", "--all")


@pytest.mark.usefixtures("lease")
def test_the_leader_is_killed_or_ends(
    operator_kubeconfig: Path, apiserver: ApiServer, kubectl: Kubectl, tmp_path: Path, fault: Fault
) -> None:
    fault("leader killed, leader ended in order", 2)
    since = now(apiserver)
    with replica("first", operator_kubeconfig, tmp_path) as first, ExitStack() as stack:
        second = stack.enter_context(replica("second", operator_kubeconfig, tmp_path))
        eventually(lambda: leads(first))
        created(kubectl, named("before"))
        first.signal(signal.SIGKILL)
        killed = seconds_until_the_job_of("killed", kubectl)
        stack.enter_context(replica("third", operator_kubeconfig, tmp_path))
        second.signal(signal.SIGTERM)
        ended = seconds_until_the_job_of("ended", kubectl)
        assert turns(apiserver, since) == ["first", "second", "third"]
    assert ended < killed, "a leader that ends in order gives its Lease up"
    fault("leader killed, leader ended in order", 2, f"{killed:.0f} s and {ended:.0f} s to the next Job")


@pytest.mark.usefixtures("lease")
def test_the_leader_is_stopped_and_wakes(
    operator_kubeconfig: Path, apiserver: ApiServer, kubectl: Kubectl, tmp_path: Path, fault: Fault
) -> None:
    """It wakes with work of its own to do, and finds that it may not."""
    fault("leader stopped (SIGSTOP), wakes later")
    since = now(apiserver)
    with replica("first", operator_kubeconfig, tmp_path) as first, replica("second", operator_kubeconfig, tmp_path):
        eventually(lambda: leads(first))
        created(kubectl, named("before"))
        first.signal(signal.SIGSTOP)
        try:
            seconds = seconds_until_the_job_of("stopped", kubectl)
            # Missing when it wakes, so that it would make it again.
            for job in kubectl.items("jobs"):
                kubectl("delete", "job", job["metadata"]["name"])
            eventually(lambda: len(kubectl.items("jobs")) == 2)
        finally:
            first.signal(signal.SIGCONT)
        eventually(lambda: not leads(first), 10)
        for job in kubectl.items("jobs"):
            kubectl("delete", "job", job["metadata"]["name"])
        eventually(lambda: len(kubectl.items("jobs")) == 2)
        time.sleep(5)
        assert turns(apiserver, since) == ["first", "second"]
        assert first.metric("triton_operator_reconcile_errors_total") <= 2
    fault("leader stopped (SIGSTOP), wakes later", 1, f"{seconds:.0f} s to the next Job, no write of the old leader")
