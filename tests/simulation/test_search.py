"""The search: parts, budget, what it finds and what becomes of the object where it fails."""

from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.answers import (
    ENVIRONMENT,
    FINAL,
    GOOD,
    PART_POINTS,
    REPEATS,
    SPACE,
    Script,
    Scripts,
    row,
    when,
)
from tests.simulation.cluster import SETTINGS, Cluster, pulled
from tests.states.deployment import a_deployment
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SearchEnd, SearchPoint, SearchResult, Tuning
from triton_operator import names

SPENT = SPACE + REPEATS


def searching(mode: str = "Quick", **fields: Any) -> dict[str, Any]:
    """Of a spec: a search within fields of its budget."""
    return {"selection": {"search": {"mode": mode, **fields}}}


def parts(cluster: Cluster) -> list[SearchRequest]:
    """What the search's Jobs that exist were asked, in the order of their making."""
    jobs = [
        each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in cluster.of_kind("Job")
        if each["metadata"]["labels"][names.STAGE_LABEL] == "search"
    ]
    return [SearchRequest.from_json(text) for *_, text in jobs]


@pytest.fixture(scope="module")
def searched() -> Cluster:
    """Ready, after a search of the two best candidates; not to be changed."""
    return a_deployment().asking(**searching(measurements=100)).settled().cluster()


@pytest.fixture
def found(searched: Cluster) -> Cluster:
    return deepcopy(searched)


def test_the_two_best_are_searched_in_parts_and_what_is_found_passes_every_gate(searched: Cluster) -> None:
    assert searched.story[12:] == [
        "search onnx-fp32",
        "search onnx-fp32",
        "search onnx-fp16",
        "search onnx-fp16",
        "convert onnx-fp32.tuned",
        "convert onnx-fp16.tuned",
        "profile onnx-fp32.tuned",
        "profile onnx-fp16.tuned",
        "metrics",
        "server",
        "measure onnx-fp32.tuned",
        "service",
    ]
    assert searched.condition("Ready")["status"] == "True"
    assert searched.status["serving"]["candidate"] == "onnx-fp32.tuned"
    tuned = searched.candidate("onnx-fp32.tuned")
    assert tuned["config"] == {
        "maxBatchSize": 8,
        "instances": 3,
        "dynamicBatching": {"maxQueueDelay": "400us"},
    }
    assert (tuned["state"], tuned["rank"]) == ("Selected", 1)
    for one, other in (("onnx-fp32", "onnx-fp32.tuned"), ("onnx-fp16", "onnx-fp16.tuned")):
        assert searched.candidate(one)["revision"] != searched.candidate(other)["revision"]


def test_what_was_found_is_the_same_file_with_another_configuration(searched: Cluster) -> None:
    asked = {
        each["metadata"]["labels"][names.CANDIDATE_LABEL]: each["spec"]["template"]["spec"]["containers"][0]["args"][-1]
        for each in searched.of_kind("Job")
        if each["metadata"]["labels"][names.STAGE_LABEL] == "convert"
    }
    plain, tuned = (ConvertRequest.from_json(asked[name]) for name in ("onnx-fp32", "onnx-fp32.tuned"))
    assert plain.conversion_key == tuned.conversion_key
    assert (plain.config.instances, tuned.config.instances) == (1, 3)
    assert tuned.config.max_queue_delay_microseconds == 400


def test_all_parts_share_one_file_and_the_second_search_gets_what_the_first_left(searched: Cluster) -> None:
    first, second, third, fourth = parts(searched)
    assert [each.part for each in (first, second, third, fourth)] == [0, 1, 0, 1]
    assert first.search == second.search != third.search == fourth.search
    assert (first.measurements, third.measurements) == (50, 100 - SPENT)
    assert (first.seconds, third.seconds) == (1800, 3600 - 5 * SPENT)


def test_the_status_tells_of_both_searches(searched: Cluster) -> None:
    one, other = searched.status["search"]
    assert (one["candidate"], other["candidate"]) == ("onnx-fp32", "onnx-fp16")
    assert (one["measurements"], one["size"], one["ended"]) == (SPENT, SPACE, "Converged")
    assert one["throughput"] == "4200.0"
    recorded = searched.objects["ConfigMap", "digits-results"]["data"]
    assert {f"search.{record}" for record in one["records"] + other["records"]} <= recorded.keys()
    assert (
        "the search for a configuration of onnx-fp32 ended after 32 measurements in a space of 30 points"
        in searched.condition("Selected")["message"]
    )


def test_a_search_is_one_job_at_a_time_and_beside_no_other_measurement() -> None:
    cluster = a_deployment().asking(**searching(measurements=100)).cluster()
    for _ in cluster.passes(until=lambda cluster: "server" in cluster.story):
        assert len(cluster.active("search")) + len(cluster.active("profile")) + len(cluster.active("measure")) <= 1
        assert not (cluster.active("search") and cluster.active("convert"))
    assert cluster.started("search") == 4


def test_progress_is_told_while_it_goes_on() -> None:
    cluster = a_deployment().asking(**searching(measurements=100)).cluster()
    told: list[str] = []
    for _ in cluster.passes(until=lambda cluster: "server" in cluster.story):
        selected = cluster.condition("Selected")
        if selected["reason"] == "Running" and (not told or told[-1] != selected["message"]):
            told.append(selected["message"])
            assert (selected["status"], cluster.condition("Ready")["status"]) == ("Unknown", "False")
            assert cluster.condition("Reconciling")["status"] == "True"
    best = "; best so far: 4200 inferences/s, p99Latency 5ms"
    jobs = {each["metadata"]["name"] for each in cluster.of_kind("Job")}
    heads, _, tails = zip(
        *(
            message.removesuffix(" has a line for each new measurement").partition("; the log of Job ")
            for message in told
        ),
        strict=True,
    )
    assert heads[:3] == (
        "searching for a configuration of onnx-fp32: 0 of at most 100 measurements are done",
        f"searching for a configuration of onnx-fp32: {PART_POINTS} of at most 100 measurements are done{best}",
        f"searching for a configuration of onnx-fp16: {SPENT} of at most 100 measurements are done",
    )
    assert set(tails[:3]) < jobs
    assert len(set(tails[:3])) == 3, "one a part"


@pytest.mark.parametrize("measurements", [8, 48, 64])
def test_no_more_is_measured_than_the_budget_and_its_end_takes_the_best_so_far(measurements: int) -> None:
    cluster = a_deployment().asking(**searching(measurements=measurements)).serving().cluster()
    assert sum(each["measurements"] for each in cluster.status["search"]) <= measurements
    assert cluster.status["search"][0]["ended"] == ("Converged" if measurements >= 2 * SPENT else "MeasurementsSpent")
    if measurements < 2 * SPENT:
        assert "because its measurements are spent" in cluster.condition("Selected")["message"]


def test_spent_time_is_not_given_to_the_second() -> None:
    cluster = a_deployment().asking(**searching(measurements=100, duration="160s")).settled().cluster()
    assert [each["candidate"] for each in cluster.status["search"]] == ["onnx-fp32"], "its 32 measurements took 160 s"
    assert cluster.condition("Ready")["status"] == "True"


def test_one_candidate_gets_the_whole_budget() -> None:
    cluster = a_deployment().one_candidate().asking(**searching(measurements=48)).settled().cluster()
    assert {each.measurements for each in parts(cluster)} == {48}
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"


def test_where_nothing_better_is_found_the_specs_own_configuration_serves() -> None:
    cluster = a_deployment().asking(**searching()).faring(when("search", Script(speed=0.3))).settled().cluster()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    assert len(cluster.status["candidates"]) == 4
    assert cluster.condition("Ready")["status"] == "True"


CRASHES = Script(sidecar_crashes="error: creating server: Internal - failed to load all models")


@pytest.mark.parametrize(
    ("stage", "script"), [("search", FINAL), ("search", CRASHES), ("convert", FINAL), ("profile", FINAL)]
)
def test_a_search_that_fails_takes_nothing_away(stage: str, script: Script) -> None:
    tuned = [f"{each}{'' if stage == 'search' else '.tuned'}" for each in ("onnx-fp32", "onnx-fp16")]
    cluster = a_deployment().asking(**searching()).faring(when(stage, script, *tuned)).serving().cluster()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    if stage == "search":
        assert [each["ended"] for each in cluster.status["search"]] == ["Failed", "Failed"]
        assert all(each["message"] for each in cluster.status["search"])
        assert "the search for a configuration of onnx-fp32 failed" in cluster.condition("Selected")["message"]
    else:
        assert cluster.candidate("onnx-fp32.tuned")["state"] == "Failed"


def test_a_search_that_fails_in_its_second_part_leaves_what_the_first_one_found() -> None:
    def scripts(stage: str, candidate: str, request: Any) -> Script:
        return FINAL if stage == "search" and request.part == 1 else GOOD

    cluster = a_deployment().asking(**searching(measurements=100)).faring(scripts).settled().cluster()
    assert cluster.status["search"][0]["ended"] == "Failed"
    assert cluster.status["search"][0]["measurements"] == PART_POINTS
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"


NO_SPACE = Script(exit_code=42, reason=Reason.STORAGE_FULL, message="no space is left")


def test_a_search_waits_for_an_outage_that_passes() -> None:
    cluster = a_deployment().asking(**searching()).faring(when("search", NO_SPACE)).cluster()
    cluster.until_has("StorageFull", "Selected", "no space is left; trying again")
    assert cluster.condition("Stalled")["status"] == "False"
    assert cluster.intent().requeue_after is not None, "no watch tells when the next try is due"
    cluster.scripts = when("search", GOOD)
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"
    assert cluster.condition("Ready")["status"] == "True"


def test_a_search_waits_for_no_outage_longer_than_the_object_can_do_without() -> None:
    cluster = a_deployment().asking(**searching()).faring(when("search", NO_SPACE, "onnx-fp32")).cluster()
    cluster.until(lambda cluster: cluster.started("search") == 2)
    cluster.settle(600)
    assert [each["ended"] for each in cluster.status["search"]] == ["Failed", "Converged"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp16.tuned"
    # 15 s, 15 s, and then as long as it has failed.
    assert 5 <= sum(each == "search onnx-fp32" for each in cluster.story) <= 8


def test_an_answer_beyond_its_bounds_is_no_valid_result() -> None:
    points = (point(1, 100.0),) * (PART_POINTS + 1)
    cluster = a_deployment().asking(**searching()).faring(answers(points)).settled().cluster()
    assert cluster.status["search"][0]["ended"] == "Failed"
    assert "failed (ResultMissing: a Job of the search answered" in cluster.condition("Selected")["message"]


def answers(points: tuple[SearchPoint, ...], repeats: tuple[SearchPoint, ...] = ()) -> Scripts:
    """Every search finds these."""

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        if stage != "search":
            return GOOD
        result = SearchResult(request.search, points, SearchEnd.CONVERGED, SPACE, 1.0, ENVIRONMENT, repeats)
        return Script(answer=Outcome("search", request.key, result).to_json())

    return scripts


def point(instances: int, throughput: float | None, max_batch_size: int = 8) -> SearchPoint:
    tuning = Tuning(max_batch_size, instances, True, (), 0, False)
    measured = row(4, throughput, 5000) if throughput else None
    return SearchPoint(tuning, measured, "" if measured else "it answers otherwise")


@pytest.mark.parametrize(
    ("points", "repeats", "instances"),
    [
        ((point(2, 9000), point(3, 8000)), (), 2),
        ((point(2, 9000, max_batch_size=1), point(3, 8000)), (), 3),
        ((point(2, None), point(3, 8000)), (), 3),
        ((point(2, 9000), point(3, 8000)), (point(2, 7000), point(3, 8100)), 3),
        ((point(2, 9000), point(3, 8000), point(4, 7900)), (point(2, 7000), point(3, 7800)), 3),
        ((point(2, 9000), point(3, 8000)), (point(2, None), point(3, 8100)), 3),
    ],
    ids=[
        "the best",
        "one that takes the online sweep's requests",
        "one that answers",
        "as repeated",
        "of those that were repeated",
        "not refused then",
    ],
)
def test_the_best_point_is_taken(points: Any, repeats: Any, instances: int) -> None:
    online = {"online": {"batchSize": 2, "concurrency": {"start": 4, "end": 4}}}
    cluster = (
        a_deployment()
        .one_candidate()
        .asking(performance=online, **searching())
        .faring(answers(points, repeats))
        .settled()
        .cluster()
    )
    assert cluster.candidate("onnx-fp32.tuned")["config"]["instances"] == instances
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"


def test_a_failed_search_is_tried_again_when_asked() -> None:
    cluster = a_deployment().asking(**searching()).faring(when("search", FINAL)).settled().cluster()
    cluster.scripts = when("search", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32.tuned"
    assert cluster.condition("Ready")["status"] == "True"


def test_a_pod_that_cannot_start_is_named() -> None:
    no_node = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "1 Insufficient memory."}]}
    cluster = (
        a_deployment()
        .asking(**searching())
        .faring(when("search", Script(pending={"phase": "Pending"} | no_node)))
        .cluster()
    )
    cluster.run(45)
    assert cluster.condition("Selected")["reason"] == "Unschedulable"
    assert cluster.condition("Stalled")["status"] == "False"
    cluster.scripts = when("search", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_going_on_serving_while_it_is_searched(serving: Cluster) -> None:
    before = serving.serving()
    serving.edit(**searching())
    for _ in serving.passes(until=lambda serving: serving.serving() != before):
        assert serving.condition("Available")["status"] == "True"
    serving.settle()
    assert serving.status["serving"]["candidate"] == "onnx-fp32.tuned"


def test_ending_the_search_goes_back_without_measuring(found: Cluster) -> None:
    story = len(found.story)
    found.edit(**searching("None"))
    found.settle()
    assert found.status["serving"]["candidate"] == "onnx-fp32"
    assert found.story[story:] == ["server", "measure onnx-fp32", "promotion"]
    assert "search" not in found.status


@pytest.mark.parametrize(
    "fields",
    [
        searching("Exhaustive", measurements=100),
        searching(measurements=200),
        {"selection": {"objectives": [{"metric": "throughput", "weight": 2}], **searching()["selection"]}},
    ],
)
def test_another_budget_mode_or_objective_uses_the_same_file_of_points(found: Cluster, fields: dict[str, Any]) -> None:
    before = {each.search for each in parts(found)}
    found.edit(**fields)
    found.settle()
    assert {each.search for each in parts(found)} & before
    assert found.condition("Ready")["status"] == "True"


def test_at_rest_a_searched_object_writes_nothing(found: Cluster) -> None:
    for _ in range(3):
        found.step()
        wanted = found.intent()
        assert (wanted.deletions, wanted.events, wanted.requeue_after) == ((), (), None)
        assert found.act() == 0


@pytest.mark.parametrize("steps", [50, 70, 90])
def test_results_deleted_by_hand_come_back(steps: int, searched: Cluster) -> None:
    cluster = a_deployment().asking(**searching(measurements=100)).cluster()
    cluster.run(steps)
    cluster.delete("ConfigMap", "digits-results")
    cluster.settle()
    assert cluster.status["serving"] == searched.status["serving"]
    assert sorted(cluster.story) == sorted(searched.story), "a finished Job says its result again"


def test_suspended_in_the_middle_of_a_search_it_goes_on_later() -> None:
    cluster = a_deployment().asking(**searching(measurements=100)).cluster()
    cluster.until(lambda cluster: cluster.started("search") >= 1)
    cluster.edit(suspend=True)
    cluster.settle()
    assert (cluster.started("search"), cluster.condition("Ready")["reason"]) == (1, "Suspended")
    cluster.edit(suspend=False)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("name", "image"),
    [("trt-fp16", pulled(SETTINGS.server_image)), ("onnx-fp32", SETTINGS.server_image)],
    ids=["an engine's", "another's"],
)
def test_a_search_of_an_engine_has_the_image_that_was_profiled(name: str, image: str) -> None:
    """The tag may have moved, and the engine runs with one version of TensorRT alone."""
    fields = searching(measurements=100) | {"gpu": {"product": "NVIDIA-L4"}}
    cluster = a_deployment().candidates(name).asking(**fields).settled().cluster()
    images = {
        container["name"]: container["image"]
        for each in cluster.of_kind("Job")
        if each["metadata"]["labels"][names.STAGE_LABEL] == "search"
        for container in each["spec"]["template"]["spec"]["initContainers"]
        if container["name"] in ("tritonserver", "tensorrt")
    }
    assert set(images.values()) == {image}
    assert ("tensorrt" in images) is name.startswith("trt")
