"""The kubelet cuts an answer that is too long for its pod: the operator reads it from the claim by another Job."""

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import kubelet
from tests.simulation.answers import GOOD, Script, row
from tests.simulation.cluster import Cluster, pulled
from tests.states.deployment import a_deployment
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Environment, ProfileResult, SourceResult
from triton_operator import names

NUMBERS = random.Random(1)
ROWS = tuple(row(each, NUMBERS.uniform(1, 1e6), NUMBERS.randrange(10**6), 8) for each in range(1, 13))
# What cannot be deflated.
COMMANDS = tuple("".join(NUMBERS.choices("0123456789abcdefghijklmnopqrstuvwxyz-/", k=1000)) for _ in range(3))
LONG = ProfileResult(
    *(True, "Passed", "", 1e-6, 64, ROWS[:6], ROWS[6:], Environment("2.51.0", "cpu", "", "", "a CPU", COMMANDS)),
    stat_digest="5" * 32,
    request_rate=tuple(replace(each, request_rate=99) for each in ROWS),
)


def long_profiles(stage: str, candidate: str, request: Any) -> Script:
    """Answers of profiles that no pod with a server can give whole."""
    return Script(answer=Outcome(stage, request.key, LONG).to_json()) if stage == "profile" else GOOD


def containers(job: dict[str, Any]) -> list[str]:
    spec = job["spec"]["template"]["spec"]
    return [each["name"] for each in [*spec.get("initContainers", []), *spec["containers"]]]


def profiles(cluster: Cluster) -> list[list[str]]:
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "profile"]
    return sorted(map(containers, jobs), key=len)


def test_the_answer_is_longer_than_a_message_of_its_pod() -> None:
    assert 12288 // 4 < len(Outcome("profile", "0" * 16, LONG).to_json().encode()) <= 4000


def test_a_cut_answer_is_read_from_the_claim_and_nothing_is_measured_again() -> None:
    cluster = a_deployment().faring(long_profiles).serving().cluster()
    measuring, reading = ["prepare", "tritonserver", "run", "profile"], ["profile"]
    assert profiles(cluster) == [reading] * 4 + [measuring] * 4, "for each candidate"
    assert cluster.status["serving"]["throughput"]
    (server,) = cluster.of_kind("Deployment")
    image = server["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == pulled("example/server:1"), "of the pod that measured, not of the one that read"
    assert cluster.act() == 0


def test_containers_that_a_webhook_adds_count_too() -> None:
    cluster = a_deployment().faring(long_profiles).where(injects="istio-proxy").settled().cluster()
    assert cluster.condition("Verified")["status"] == "True"


def test_an_answer_that_no_pod_can_give_names_the_containers_that_somebody_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kubelet, "_as_kept", lambda pod, words: words.encode()[:1000].decode())
    monkeypatch.setattr("triton_operator.observed.pod.POD_MESSAGES_BYTES", 1000)
    cluster = a_deployment().faring(long_profiles).where(injects="istio-proxy").settled().cluster()
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "ResultMissing")
    assert "cut the answer" in failed["message"]
    assert "istio-proxy" in failed["message"]


@pytest.mark.parametrize("order", [("containers", "job", "pod"), ("job", "containers", "pod")])
def test_the_order_in_which_the_end_is_seen_changes_nothing(order: tuple[str, ...]) -> None:
    cluster = a_deployment().faring(long_profiles).where(order=order).serving().cluster()
    assert sum(each.startswith("profile") for each in cluster.story) == 8


def long_sources(stage: str, candidate: str, request: Any) -> Script:
    """An answer of a source that is longer than a message of a pod of five containers."""
    if stage != "source":
        return GOOD
    words = COMMANDS[0] + COMMANDS[1] + COMMANDS[2]
    return Script(answer=Outcome(stage, request.key, SourceResult("d" * 64, 3, 1000, resolved=words)).to_json())


def test_a_pod_that_goes_on_does_not_keep_the_reader_from_its_quota() -> None:
    queue = {"pod": {"labels": {names.QUEUE_LABEL: "models"}}}
    cluster = (
        a_deployment()
        .one_candidate()
        .asking(conversion=queue)
        .faring(long_profiles)
        .where(injects="istio-proxy", quota=1)
        .settled()
        .cluster()
    )
    assert cluster.condition("Verified")["status"] == "True"


def test_an_answer_that_is_nowhere_else_is_told_as_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is looked at every time, and no other Job has its mounts."""
    monkeypatch.setattr(kubelet, "_as_kept", lambda pod, words: words.encode()[:2457].decode())
    monkeypatch.setattr("triton_operator.observed.pod.POD_MESSAGES_BYTES", 2 * 2457)
    cluster = a_deployment().faring(long_sources).where(injects="vault-agent").settled().cluster()
    failed = cluster.condition("SourceResolved")
    assert failed["reason"] == "ResultMissing"
    assert "cut the answer" in failed["message"]
    assert "added vault-agent;" in failed["message"]
    assert "source" not in failed["message"].partition("added ")[2].partition(";")[0]
    assert cluster.started("source") == 1


def test_an_answer_is_read_although_an_earlier_job_of_that_name_failed() -> None:
    fails = [True]

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        failed = Script(exit_code=EXIT_FINAL, reason=Reason.INFERENCE_FAILED, message="no")
        return failed if stage == "profile" and fails[0] else long_profiles(stage, candidate, request)

    cluster = a_deployment().one_candidate().faring(scripts).settled().cluster()
    fails[0] = False
    cluster.retry()
    begun = cluster.started("profile")
    while cluster.started("profile") == begun:
        cluster.act()
    # No pass sees it run: another replica takes over.
    for _ in range(12):
        cluster.step()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_retry_measures_again_what_could_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = [1000]
    monkeypatch.setattr(kubelet, "_as_kept", lambda pod, words: words.encode()[: cut[0]].decode())
    monkeypatch.setattr("triton_operator.observed.pod.POD_MESSAGES_BYTES", 1000)
    cluster = a_deployment().faring(long_profiles).settled().cluster()
    assert cluster.candidate("onnx-fp32")["reason"] == "ResultMissing"
    cut[0] = 4096
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
