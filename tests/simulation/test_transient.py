"""What passes by itself stops no object for good: each stage tries again, without anybody, after a growing pause."""

from dataclasses import replace

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_operator.observed.failures import Failure

OUTAGES = [
    ("source", Reason.SOURCE_UNREACHABLE, "SourceResolved"),
    ("source", Reason.SOURCE_CHANGED, "SourceResolved"),
    ("source", Reason.SOURCE_ACCESS_DENIED, "SourceResolved"),
    ("packages", Reason.SOURCE_ACCESS_DENIED, "Converted"),
    ("packages", Reason.SOURCE_UNREACHABLE, "Converted"),
    ("reference", Reason.STORAGE_FULL, "Converted"),
    ("convert", Reason.STORAGE_FULL, "Converted"),
    ("profile", Reason.SERVER_UNREACHABLE, "Verified"),
    ("measure", Reason.SERVER_UNREACHABLE, "PerformanceMeasured"),
]
ALONE = ["packages", "source", "reference"]
"""Stages of one Job, whose condition stays as it is while the next try runs."""


def a_cluster(*names: str) -> Cluster:
    conversion = {"requirements": "requirements.txt"}
    return a_deployment().candidates(*names or ["onnx-fp32"]).asking(conversion=conversion).cluster()


def run_until(cluster: Cluster, kind: str, status: str) -> None:
    """Passes and steps until a condition has that status."""
    cluster.run(1)
    cluster.until(lambda cluster: cluster.condition(kind)["status"] == status, 200)


@pytest.mark.parametrize(("stage", "reason", "condition"), OUTAGES)
def test_an_outage_ends_without_anybody(stage: str, reason: Reason, condition: str) -> None:
    cluster = a_cluster()
    cluster.scripts = when(stage, Script(exit_code=42, reason=reason, message="it answered 503"))
    run_until(cluster, condition, "False")
    assert "it answered 503" in cluster.condition(condition)["message"]
    run_until(cluster, "Stalled", "True")
    assert cluster.intent().requeue_after is not None, "no watch tells when the next try is due"
    first = cluster.started(stage)
    cluster.scripts = when(stage, GOOD)
    run_until(cluster, "Ready", "True")
    assert cluster.started(stage) > first
    assert not [each for each in cluster.objects["ConfigMap", "digits-results"]["data"] if "failure." in each]


@pytest.mark.parametrize("stage", ALONE)
def test_the_condition_stays_while_it_is_tried_again_and_says_so(stage: str) -> None:
    cluster = a_cluster()
    slow = {Reason.SOURCE_CHANGED, Reason.SOURCE_ACCESS_DENIED}
    ((_, reason, condition),) = [each for each in OUTAGES if each[0] == stage and each[1] not in slow]
    cluster.scripts = when(stage, Script(exit_code=42, reason=reason, message="it answered 503"))
    run_until(cluster, condition, "False")
    since = cluster.condition(condition)["lastTransitionTime"]
    assert cluster.condition("Stalled")["status"] == "False", "it may be over in a moment"
    cluster.run(120)
    now = cluster.condition(condition)
    assert (now["reason"], now["lastTransitionTime"]) == (str(reason), since)
    assert now["message"].endswith("it answered 503; trying again")
    # 15 s, 15 s, 32 s, 66 s and 130 s, and what each Job takes.
    assert 4 <= cluster.started(stage) <= 6


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_candidate_is_not_tried_again_while_another_one_serves(stage: str) -> None:
    cluster = a_cluster("onnx-fp32", "onnx-fp16")
    full = Script(exit_code=42, reason=Reason.STORAGE_FULL, message="no space is left")
    cluster.scripts = when(stage, full, "onnx-fp32")
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    tries = cluster.started(stage)
    cluster.run(100)
    assert cluster.started(stage) == tries
    assert cluster.candidate("onnx-fp32")["reason"] == "StorageFull"


def test_a_retry_by_hand_waits_for_no_pause() -> None:
    cluster = a_cluster()
    cluster.scripts = when(
        "packages", Script(exit_code=42, reason=Reason.SOURCE_UNREACHABLE, message="it answered 503")
    )
    run_until(cluster, "Stalled", "True")
    cluster.run(60)
    tries = cluster.started("packages")
    cluster.retry()
    cluster.run(5)
    assert cluster.started("packages") == tries + 1


def test_the_record_of_an_older_version_has_no_time_and_is_tried_again_too() -> None:
    cluster = a_cluster()
    cluster.scripts = when(
        "packages", Script(exit_code=42, reason=Reason.SOURCE_UNREACHABLE, message="it answered 503")
    )
    run_until(cluster, "Converted", "False")
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    (name,) = (each for each in data if each.startswith("failure."))
    data[name] = replace(Failure.from_json(data[name]), since="", at="").to_json()
    assert '"since"' not in data[name]
    cluster.scripts = when("packages", GOOD)
    run_until(cluster, "Ready", "True")


@pytest.mark.parametrize(("stage", "condition"), [("source", "SourceResolved"), ("measure", "PerformanceMeasured")])
def test_a_node_that_loses_containers_stops_no_object_for_good(stage: str, condition: str) -> None:
    cluster = a_cluster()
    cluster.scripts = when(stage, Script(exit_code=255, killed="Unknown"))
    run_until(cluster, condition, "False")
    cluster.until_has("NodeNotReady", condition)
    run_until(cluster, "Stalled", "True")
    cluster.scripts = when(stage, GOOD)
    run_until(cluster, "Ready", "True")
