"""plan() driven to the end against a cluster in memory: order, end, rest; then with everything that can go wrong."""

import pytest
from triton_converters.reasons import Reason

from tests.simulation import results
from tests.simulation.cluster import Behaviour, FakeCluster
from tests.simulation.objects import a_deployment, a_model


def fails(stage: str, candidate: str = "", reason: Reason = Reason.USER_CODE_FAILED) -> Behaviour:
    """A stage (of one candidate) that fails."""

    def behaviour(this_stage: str, this_candidate: str, key: str) -> str | None:
        return results.failure(stage, key, reason) if (this_stage, this_candidate) == (stage, candidate) else None

    return behaviour


def test_from_a_new_object_to_ready() -> None:
    cluster = FakeCluster(a_deployment())
    cluster.settle()
    assert cluster.story == [
        "source",
        "reference",
        "convert trace-fp32",
        "convert script-fp32",
        "convert onnx-fp32",
        "convert onnx-fp16",
        "profile trace-fp32",
        "profile script-fp32",
        "profile onnx-fp32",
        "profile onnx-fp16",
        "server",
        "measure onnx-fp32",
        "service",
    ]
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.body["status"]["serving"]["candidate"] == "onnx-fp32"


def test_a_second_pass_plans_nothing_new() -> None:
    cluster = FakeCluster(a_deployment())
    cluster.settle()
    writes, status = cluster.writes, cluster.body["status"]
    last = cluster.run_pass()
    assert cluster.writes == writes
    assert cluster.body["status"] == status
    assert (last.events, last.deletions, last.requeue_after) == ((), (), None)


def test_conversions_run_at_most_parallelism_at_a_time() -> None:
    cluster = FakeCluster(a_deployment(conversion={"parallelism": 3}))
    most = 0
    for _ in range(30):
        cluster.run_pass()
        most = max(most, sum("-convert-" in name for name in cluster.active_jobs()))
        assert sum("-profile-" in name for name in cluster.active_jobs()) <= 1
        cluster.tick()
    assert most == 3


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_candidate_that_fails_stops_no_other(stage: str) -> None:
    cluster = FakeCluster(a_deployment(), fails(stage, "onnx-fp32", Reason.CONVERSION_FAILED))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.body["status"]["serving"]["candidate"] == "onnx-fp16"
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "ConversionFailed")
    assert failed["message"] == f"{stage} failed as told"


@pytest.mark.parametrize("stage", ["source", "reference"])
def test_a_stage_that_fails_for_good_stalls(stage: str) -> None:
    cluster = FakeCluster(a_deployment(), fails(stage))
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "UserCodeFailed")
    assert f"{stage} failed as told" in stalled["message"]
    assert cluster.condition("Reconciling")["status"] == "False"


def test_deleting_a_failed_job_is_asking_for_another_try() -> None:
    cluster = FakeCluster(a_deployment(), fails("reference"))
    cluster.settle()
    job = next(name for kind, name in cluster.objects if kind == "Job" and "-reference-" in name)
    cluster._delete("Job", job)
    cluster.behaviour = fails("none")
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_more_memory_is_another_job() -> None:
    cluster = FakeCluster(a_deployment(), fails("reference", reason=Reason.OUT_OF_MEMORY))
    cluster.settle()
    cluster.behaviour = fails("none")
    cluster.edit(conversion={"pod": {"resources": {"limits": {"memory": "4Gi"}}}})
    cluster.settle()
    assert cluster.story.count("reference") == 2
    assert cluster.condition("Ready")["status"] == "True"


def test_what_serves_goes_on_until_the_new_revision_has_passed() -> None:
    cluster = FakeCluster(a_deployment())
    cluster.settle()
    first = cluster.serving()
    cluster.edit(models=[a_model(config={"maxBatchSize": 16, "dynamicBatching": {}})])
    for _ in range(12):
        cluster.run_pass()
        assert cluster.serving() is not None
        if "flip" not in cluster.story:
            assert cluster.serving() == first
            assert cluster.condition("Available")["status"] == "True"
        cluster.tick()
    cluster.settle()
    assert cluster.serving() != first
    assert sum(kind == "Deployment" for kind, _ in cluster.objects) == 1


def test_going_back_reuses_every_result() -> None:
    cluster = FakeCluster(a_deployment())
    cluster.settle()
    first = cluster.serving()
    cluster.edit(models=[a_model(config={"maxBatchSize": 16})])
    cluster.settle()
    jobs = len([each for each in cluster.story if each.split()[0] in ("source", "reference", "convert", "profile")])
    cluster.edit(models=[a_model()])
    cluster.settle()
    assert cluster.serving() == first
    assert jobs == len(
        [each for each in cluster.story if each.split()[0] in ("source", "reference", "convert", "profile")]
    )


@pytest.mark.parametrize("stage", ["source", "reference", "convert", "profile", "measure"])
def test_a_new_generation_that_fails_leaves_the_old_serving(stage: str) -> None:
    cluster = FakeCluster(a_deployment())
    cluster.settle()
    first = cluster.serving()

    def behaviour(this_stage: str, candidate: str, key: str) -> str | None:
        return results.failure(stage, key) if this_stage == stage else None

    cluster.behaviour = behaviour
    cluster.edit(
        source={"uri": "pvc://models/digits", "revision": "v2"},
        models=[a_model(config={"maxBatchSize": 16, "dynamicBatching": {}})],
    )
    cluster.settle()
    assert cluster.serving() == first
    assert cluster.condition("Ready")["status"] == "False"
    assert cluster.condition("Stalled")["status"] == "True"
    assert cluster.condition("Available")["status"] == "True"
    assert cluster.body["status"]["serving"]["revision"] == first


def test_a_constraint_nobody_meets_rolls_nothing_out() -> None:
    constraint = {"metric": "P99LatencyMicroseconds", "maximum": "1000"}
    cluster = FakeCluster(a_deployment(selection={"constraints": [constraint]}))
    cluster.settle()
    ready = cluster.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ConstraintsNotMet")
    assert "the closest is onnx-fp32" in cluster.condition("Selected")["message"]
    assert cluster.serving() is None
    assert all(each["satisfiesConstraints"] is False for each in cluster.body["status"]["candidates"])


def test_a_server_that_never_starts_stalls_at_its_deadline() -> None:
    cluster = FakeCluster(a_deployment(serving={"progressDeadlineSeconds": 30}), server_starts=False)
    for _ in range(60):
        cluster.run_pass()
        cluster.tick()
    assert cluster.condition("Stalled")["reason"] == "ProgressDeadlineExceeded"
    assert cluster.serving() is None


def test_suspend_starts_no_job_and_keeps_what_serves() -> None:
    cluster = FakeCluster(a_deployment(suspend=True))
    cluster.settle()
    assert cluster.story == []
    assert cluster.condition("Ready")["reason"] == "Suspended"
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_source_that_comes_later_is_found() -> None:
    cluster = FakeCluster(a_deployment(), fails("source", reason=Reason.SOURCE_NOT_FOUND))
    for _ in range(12):
        cluster.run_pass()
        cluster.tick()
    assert cluster.condition("SourceResolved")["reason"] == "SourceNotFound"
    assert cluster.condition("Stalled")["status"] == "False"
    cluster.behaviour = fails("none")
    for _ in range(40):
        cluster.run_pass()
        cluster.tick()
    assert cluster.condition("Ready")["status"] == "True"
