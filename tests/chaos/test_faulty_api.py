"""A faulty way to the API server: the operator recovers, loses no update, and does not hammer."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.node import Node
from tests.apiserver.operator_process import Operator, eventually
from tests.apiserver.test_operator import condition
from tests.chaos.proxy import FINE, Fault, Proxy, Request, Rule, all_fine
from tests.conftest import Fault as Named

RECOVERED_SECONDS = 90.0
"""After the fault, on a busy machine; 30 s is what is promised of the operator alone."""
REQUESTS_A_SECOND = 40
"""Nine watches and one object that fails; a busy loop makes hundreds."""
AT_REST = 20
"""Requests in three seconds: room for one round of full lists, and of watches that end; a busy loop makes hundreds."""
EDIT = '{"spec": {"serving": {"arguments": ["--pinned-memory-pool-byte-size=%d"]}}}'
WRITES = {"PATCH", "POST", "PUT", "DELETE"}
_numbers = itertools.count(1)


def every(step: int, fault: Fault, methods: frozenset[str] | set[str] = frozenset()) -> Rule:
    """A fault for each so-manieth request that is no watch."""

    def rule(request: Request) -> Fault:
        concerned = not request.watch and (not methods or request.method in methods)
        return fault if concerned and request.number % step == step - 1 else FINE

    return rule


def watches(fault: Fault) -> Rule:
    return lambda request: fault if request.watch else FINE


@dataclass
class Behind:
    """The operator behind the proxy."""

    proxy: Proxy
    operator: Operator


@pytest.fixture(scope="module")
def behind(operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("proxy")
    with Proxy(operator_kubeconfig, folder) as proxy, Operator(proxy.kubeconfig, folder / "log") as operator:
        operator.wait_ready()
        yield Behind(proxy, operator)


FAULTS: dict[str, tuple[Rule, float]] = {
    "every third request: 429, Retry-After 1": (every(3, Fault(code=429, retry_after="1")), 8),
    "every second request: 500": (every(2, Fault(code=500)), 8),
    "every second write: 409": (every(2, Fault(code=409), WRITES), 8),
    "every third write is done and its answer lost": (every(3, Fault(lost=True), WRITES), 8),
    "every third request is cut off": (every(3, Fault(cut=True)), 8),
    "every watch: 410 Gone": (watches(Fault(gone=True)), 8),
}
MORE: dict[str, tuple[Rule, float]] = {
    "every answer takes 0.5 s": (lambda request: Fault(seconds=0.5), 8),
    "every request: 429, Retry-After 2": (lambda request: Fault(code=429, retry_after="2"), 8),
    "every watch ends after 0.5 s": (watches(Fault(lasts=0.5)), 8),
    "every connection is refused for 20 s": (lambda request: Fault(cut=True), 20),
    "every connection is refused for two minutes": (lambda request: Fault(cut=True), 120),
    "every request: 503 for two minutes": (lambda request: Fault(code=503), 120),
}


@pytest.mark.parametrize("what", FAULTS)
def test_it_recovers(what: str, behind: Behind, kubectl: Kubectl, fault: Named) -> None:
    recovers(what, *FAULTS[what], behind, kubectl, fault)


@pytest.mark.chaos
@pytest.mark.parametrize("what", MORE)
def test_it_recovers_from_more(what: str, behind: Behind, kubectl: Kubectl, fault: Named) -> None:
    recovers(what, *MORE[what], behind, kubectl, fault)


def recovers(what: str, rule: Rule, seconds: float, behind: Behind, kubectl: Kubectl, fault: Named) -> None:
    """From creation on the fault holds; it is edited once while the fault holds, and ends Ready."""
    fault(what)
    with Node(kubectl) as node:
        behind.proxy.rule(rule)
        if rule(Request(0, "GET", "/", False)).cut:
            behind.proxy.cut_everything()
        began = time.monotonic()
        kubectl("create", "-f", "-", body=MINIMAL)
        time.sleep(seconds / 2)
        kubectl("patch", "td", "digits", "--type=merge", "-p", EDIT % (2**20 * next(_numbers)))
        time.sleep(seconds / 2)
        rate = behind.proxy.since(began) / (time.monotonic() - began)
        behind.proxy.rule(all_fine)
        lifted = time.monotonic()
        eventually(lambda: is_ready(kubectl, 2), RECOVERED_SECONDS)
        recovered = time.monotonic() - lifted
        eventually(lambda: len(kubectl.items("deployments")) == 1, RECOVERED_SECONDS)
        assert not_twice(node.ended), node.ended
    quiet = time.monotonic()
    time.sleep(3)
    assert behind.proxy.since(quiet) <= AT_REST, "silent once it is Ready"
    assert rate < REQUESTS_A_SECOND
    log = behind.operator.log.read_text()
    assert " a bug" not in log
    fault(what, 1, f"Ready {recovered:.0f} s after it; {rate:.1f} requests/s while it lasted")


def is_ready(kubectl: Kubectl, generation: int) -> bool:
    ready = condition(kubectl, "Ready")
    return (ready.get("status"), ready.get("observedGeneration")) == ("True", generation)


def not_twice(ended: list[str]) -> bool:
    """The edit changes the server's pod, and so what is profiled and measured, once: all else runs once."""
    counts = {stage: ended.count(stage) for stage in ended}
    return all(
        number == 1 or (number == 2 and stage.split()[0] in ("profile", "metrics", "measure"))
        for stage, number in counts.items()
    )


@pytest.mark.chaos
def test_silent_watches(behind: Behind, kubectl: Kubectl, fault: Named) -> None:
    """The connections stay open and nothing comes: they are ended after 70 s."""
    fault("all watches silent while connections stay open")
    behind.proxy.silence(True)
    with Node(kubectl):
        kubectl("create", "-f", "-", body=MINIMAL)
        time.sleep(5)
        behind.proxy.silence(False)
        began = time.monotonic()
        eventually(lambda: is_ready(kubectl, 1), 240)
    fault("all watches silent while connections stay open", 1, f"Ready after {time.monotonic() - began:.0f} s")
