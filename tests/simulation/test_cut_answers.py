"""The kubelet cuts an answer that is too long for its pod: the operator reads it from the claim by another Job."""

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import cluster as simulated
from tests.simulation.answers import GOOD, Fate, row
from tests.simulation.cluster import Cluster, pulled
from tests.simulation.deployments import a_spec
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import Environment, ProfileResult
from triton_operator import names

NUMBERS = random.Random(1)  # noqa: S311
ROWS = tuple(row(each, NUMBERS.uniform(1, 1e6), NUMBERS.randrange(10**6), 8) for each in range(1, 13))
# What cannot be deflated.
COMMANDS = tuple("".join(NUMBERS.choices("0123456789abcdefghijklmnopqrstuvwxyz-/", k=1000)) for _ in range(3))
LONG = ProfileResult(
    *(True, "Passed", "", 1e-6, 64, ROWS[:6], ROWS[6:], Environment("2.51.0", "cpu", "", "", "a CPU", COMMANDS)),
    seen="5" * 32,
    request_rate=tuple(replace(each, request_rate=99) for each in ROWS),
)


def long_profiles(stage: str, candidate: str, request: Any) -> Fate:
    """Answers of profiles that no pod with a server can give whole."""
    return Fate(answer=Outcome(stage, request.key, LONG).to_json()) if stage == "profile" else GOOD


def containers(job: dict[str, Any]) -> list[str]:
    spec = job["spec"]["template"]["spec"]
    return [each["name"] for each in [*spec.get("initContainers", []), *spec["containers"]]]


def profiles(cluster: Cluster) -> list[list[str]]:
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "profile"]
    return sorted(map(containers, jobs), key=len)


def test_the_answer_is_longer_than_a_message_of_its_pod() -> None:
    assert 12288 // 4 < len(Outcome("profile", "0" * 16, LONG).to_json().encode()) <= 4000


def test_a_cut_answer_is_read_from_the_claim_and_nothing_is_measured_again() -> None:
    cluster = Cluster(a_spec(), long_profiles)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    measuring, reading = ["prepare", "tritonserver", "run", "profile"], ["profile"]
    assert profiles(cluster) == [reading] * 4 + [measuring] * 4, "for each candidate"
    assert cluster.status["serving"]["throughput"]
    (server,) = cluster.of_kind("Deployment")
    image = server["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == pulled("example/server:1"), "of the pod that measured, not of the one that read"
    assert cluster.act() == 0


def test_containers_that_a_webhook_adds_count_too() -> None:
    cluster = Cluster(a_spec(), long_profiles, injects="istio-proxy")
    cluster.settle()
    assert cluster.condition("Verified")["status"] == "True"


def test_an_answer_that_no_pod_can_give_names_the_containers_that_somebody_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulated, "_as_kept", lambda pod, words: words.encode()[:1000].decode())
    monkeypatch.setattr("triton_operator.observed.pods.POD_MESSAGES_BYTES", 1000)
    cluster = Cluster(a_spec(), long_profiles, injects="istio-proxy")
    cluster.settle()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "ResultMissing")
    assert "cut the answer" in failed["message"]
    assert "istio-proxy" in failed["message"]


@pytest.mark.parametrize("order", [("containers", "job", "pod"), ("job", "containers", "pod")])
def test_the_order_in_which_the_end_is_seen_changes_nothing(order: tuple[str, ...]) -> None:
    cluster = Cluster(a_spec(), long_profiles, order=order)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert sum(each.startswith("profile") for each in cluster.story) == 8
