"""Objects with a megabyte of labels each: they are told, and neither the replicas nor the API server suffer."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.custom_resources import named
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import created
from tests.chaos.test_replicas import leads, lease, replica, seconds_until_the_job_of
from tests.conftest import Fault

__all__ = ["lease"]

OBJECTS = 37
MOST_MIB = 100
"""Of one replica above what it takes with one object. 202 more were seen without a bound."""


def labelled(name: str, count: int) -> dict[str, Any]:
    body = named(name)
    labels = {f"{'team' * 50}.example/{place:0>60}": f"{place:0>63}" for place in range(count)}
    return {**body, "metadata": body["metadata"] | {"labels": labels}}


def resident_mib(operator: Operator) -> float:
    lines = Path(f"/proc/{operator.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


@pytest.mark.chaos
@pytest.mark.usefixtures("lease")
def test_labels_fill_no_memory_and_stop_nobody(
    operator_kubeconfig: Path, cluster_kubectl: Kubectl, kubectl: Kubectl, tmp_path: Path, fault: Fault
) -> None:
    fault("37 objects with 1.27 MB of labels each, the leader killed among them")
    cluster_kubectl("create", "namespace", "many-labels")
    hostile = cluster_kubectl.within("many-labels")
    with replica("first", operator_kubeconfig, tmp_path) as first, ExitStack() as stack:
        second = stack.enter_context(replica("second", operator_kubeconfig, tmp_path))
        eventually(lambda: leads(first))
        created(kubectl, named("before"))
        before = [resident_mib(each) for each in (first, second)]
        for number in range(OBJECTS):
            hostile("create", "-f", "-", body=labelled(f"many-{number}", 3_800))
        kubectl("create", "-f", "-", body=labelled("told", 2_000))
        told = 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
        eventually(lambda: "metadata.labels has more than" in kubectl("get", "td", "told", "-o", told), 120)
        grown = [resident_mib(each) - earlier for each, earlier in zip((first, second), before, strict=True)]
        among = seconds_until_the_job_of("among", kubectl)
        begun = time.monotonic()
        kubectl("get", "jobs", "--request-timeout=10s")
        answered = time.monotonic() - begun
        first.signal(signal.SIGKILL)
        taken_over = seconds_until_the_job_of("after", kubectl)
        assert leads(second)
        stack.enter_context(replica("third", operator_kubeconfig, tmp_path))
        assert max(grown) < MOST_MIB
        assert "504" not in second.log.read_text()
    seen = (
        f"{max(grown):.0f} MiB more, a Job after {among:.1f} and {taken_over:.0f} s, an answer after {answered:.1f} s"
    )
    fault("37 objects with 1.27 MB of labels each, the leader killed among them", 1, seen)
