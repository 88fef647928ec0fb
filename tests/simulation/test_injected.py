"""A webhook adds a container to every Job's pod that never ends by itself: each Job is judged by its own container."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, when
from tests.simulation.cluster import STEP, Cluster
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason

CANDIDATES = ["onnx-fp32", "onnx-fp16"]
STAGES = ["source", "reference", "convert", "profile", "measure"]
GRACE_STEPS = 60 / STEP.total_seconds()


def injected(stage: str, script: Script, *candidates: str) -> Cluster:
    """A cluster in which one stage (of some candidates) has that fate."""
    scripts = when(stage, script, *candidates)
    return a_deployment().candidates(*CANDIDATES).faring(scripts).where(injects="istio-proxy").cluster()


def settle(cluster: Cluster) -> None:
    """Passes until nothing changes and none is due. A pod with a private server goes before the next one comes."""
    for _ in range(300):
        changes = cluster.act() + cluster.step()
        assert len(servers(cluster)) <= 1
        if changes == 0:
            pause = cluster.intent().requeue_after
            if pause is None:
                break
            cluster.now += timedelta(seconds=pause)
    cluster.settle(3)
    assert not pods(cluster), "a pod that never ends holds what it has"


def until(cluster: Cluster, holds: Callable[[], bool]) -> int:
    """Passes and steps up to the first pass after which it holds; how many steps there were."""
    for steps in cluster.passes(900):
        if holds():
            return steps
    raise AssertionError(f"it never came about: {cluster.story[-8:]}")


def job_of(cluster: Cluster, stage: str) -> str:
    """Name of a stage's only Job."""
    (name,) = [each["metadata"]["name"] for each in cluster.of_kind("Job") if f"-{stage}-" in each["metadata"]["name"]]
    return str(name)


def pods(cluster: Cluster) -> list[str]:
    """Names of the Jobs' pods."""
    owners = [(each["metadata"], each["metadata"]["ownerReferences"][0]) for each in cluster.of_kind("Pod")]
    return [metadata["name"] for metadata, owner in owners if owner["kind"] == "Job"]


def servers(cluster: Cluster) -> list[str]:
    """Names of the Jobs' pods that have a private server."""
    return [each for each in pods(cluster) if "-profile-" in each or "-search-" in each]


def test_the_way_to_ready_is_the_same_and_leaves_no_pod() -> None:
    cluster = injected("source", GOOD)
    settle(cluster)
    assert cluster.condition("Ready")["status"] == "True"
    plain = Cluster(cluster.spec)
    plain.settle()
    assert cluster.story == plain.story


def test_a_result_counts_at_once_and_its_job_stays_for_a_minute() -> None:
    """What the webhook added may end by itself, and the Job with it."""
    cluster = injected("source", GOOD)
    until(cluster, lambda: cluster.started("reference") == 1)
    source = job_of(cluster, "source")
    assert cluster.objects["Job", source]["status"]["shown"] == 1, "its container has ended, its pod has not"
    assert cluster.intent().requeue_after is not None, "no watch tells that a minute is over"
    assert until(cluster, lambda: ("Job", source) not in cluster.objects) == GRACE_STEPS + 1


def test_no_profile_is_told_to_run_while_the_pod_of_the_last_one_goes_on() -> None:
    cluster = injected("source", GOOD)
    until(cluster, lambda: cluster.started("profile") == 1)
    profile = job_of(cluster, "profile")
    until(cluster, lambda: bool(cluster.objects["Job", profile]["status"].get("shown")))
    cluster.act()
    assert servers(cluster), "what the webhook added goes on"
    verified = cluster.condition("Verified")
    assert (verified["status"], verified["reason"]) == ("Unknown", "Waiting")
    other = next(each for each in CANDIDATES if each not in str(cluster.objects["Job", profile]["metadata"]["labels"]))
    assert verified["message"] == f"candidate {other} is profiled once the pod of the last measurement has ended"


@pytest.mark.parametrize("stage", STAGES)
def test_a_final_failure_counts_at_once(stage: str) -> None:
    cluster = injected(stage, FINAL)
    until(cluster, lambda: any(each.reason == FINAL.reason for each in cluster.events))
    assert any(each["status"].get("shown") for each in cluster.of_kind("Job")), "it stays for its log"
    settle(cluster)
    assert cluster.condition("Stalled")["status"] == "True"
    assert "model.py, line 3" in cluster.condition("Ready")["message"]
    assert cluster.started(stage) == (len(CANDIDATES) if stage in ("convert", "profile") else 1)


ENDS = [
    (FINAL, "UserCodeFailed", "model.py, line 3: no"),
    (Script(exit_code=1, message="out of luck"), "Crashed", "exit code 1: out of luck; container istio-proxy"),
    (Script(exit_code=137, killed="OOMKilled"), "OutOfMemory", "; container istio-proxy"),
    (Script(answer="not a result"), "ResultMissing", "; container istio-proxy"),
]


@pytest.mark.parametrize("stage", ["convert", "profile"])
@pytest.mark.parametrize(("script", "reason", "words"), ENDS)
def test_a_candidate_that_fails_stops_no_other(stage: str, script: Script, reason: str, words: str) -> None:
    cluster = injected(stage, script, "onnx-fp32")
    settle(cluster)
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", reason)
    assert words in failed["message"]
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"
    assert cluster.started("convert") == len(CANDIDATES)
    assert cluster.started("profile") == len(CANDIDATES) - (stage == "convert")


def test_an_end_that_might_be_tried_again_is_a_failure_after_a_minute() -> None:
    cluster = injected("reference", Script(exit_code=1, message="out of luck"))
    until(cluster, lambda: cluster.condition("Ready")["reason"] == "Crashed")
    assert cluster.condition("Stalled")["status"] == "False"
    assert until(cluster, lambda: cluster.condition("Stalled")["status"] == "True") == GRACE_STEPS + 1
    settle(cluster)
    cluster.scripts = when("reference", GOOD)
    cluster.retry()
    settle(cluster)
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("reference") == 2


def test_a_source_that_comes_later_is_found() -> None:
    missing = Script(exit_code=42, reason=Reason.SOURCE_NOT_FOUND, message="nothing at digits")
    cluster = injected("source", missing)
    cluster.run(60)
    assert (cluster.condition("Ready")["reason"], cluster.condition("Stalled")["status"]) == ("SourceNotFound", "True")
    assert cluster.started("source") > 1
    assert len(pods(cluster)) <= 1
    cluster.scripts = when("source", GOOD)
    settle(cluster)
    assert cluster.condition("Ready")["status"] == "True"


def test_every_part_of_a_search_has_its_server_alone() -> None:
    cluster = injected("source", GOOD)
    cluster.edit(selection={"search": {"mode": "Quick"}})
    settle(cluster)
    plain = Cluster(cluster.spec)
    plain.settle()
    assert cluster.started("search") > 1
    assert cluster.story == plain.story
    assert cluster.status["serving"]["candidate"] == plain.status["serving"]["candidate"]
