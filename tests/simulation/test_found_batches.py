"""A graph whose spec leaves maxBatchSize out: the source Job finds the batch dimension, and the operator chooses."""

from typing import Any

import pytest

from tests.simulation.answers import Script
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, a_spec, candidate
from tests.simulation.edits import another_version
from tests.simulation.test_found_formats import SMALLEST, a_file, requests
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest, SourceRequest
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.reasons import Reason
from triton_operator.planning import resolving

MIXED = Script(exit_code=EXIT_FINAL, reason=Reason.BATCHING_UNSUPPORTED, message="sample 0 gives other outputs")


def served(spec: dict[str, Any]) -> Cluster:
    """The cluster once the object serves."""
    cluster = Cluster(spec)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    return cluster


def a_graph(**fields: Any) -> dict[str, Any]:
    """The smallest object, whose graph says everything itself; keywords replace the model's fields."""
    return SMALLEST | {"models": [a_file(fields.pop("path", "ocr.onnx"), **fields)]}


def batching(cluster: Cluster) -> list[tuple[int, bool]]:
    """The largest batch of each conversion, and whether the dynamic batcher is on."""
    found = requests(cluster, "convert", ConvertRequest)
    return [(each.model.max_batch_size, each.config.dynamic_batching) for each in found]


def test_a_batch_dimension_is_used_by_the_dynamic_batcher() -> None:
    cluster = served(a_graph())
    assert batching(cluster) == [(4, True)]
    assert [each.model.max_batch_size for each in requests(cluster, "reference", ReferenceRequest)] == [4]
    (profile,) = requests(cluster, "profile", ProfileRequest)
    assert (profile.offline.batch_sizes, profile.online.concurrencies[:4]) == ((1, 4), (1, 2, 4, 8))
    assert cluster.status["signature"]["maxBatchSize"] == 4


def test_a_graph_of_one_size_is_served_without_a_batch_dimension() -> None:
    cluster = served(a_graph(path="fixed.onnx"))
    assert batching(cluster) == [(0, False)]
    (model,) = cluster.status["resolved"]["models"]
    assert model["maxBatchSize"] == 0
    message = cluster.condition("SourceResolved")["message"]
    assert message.endswith(
        "; fixed.onnx shows no batch dimension, so maxBatchSize is 0; if it has one, set config.maxBatchSize"
    )


def batches_fail(stage: str, candidate: str, request: Any) -> Script:
    """The fate of each Job, where the model answers a sample in a batch otherwise than alone."""
    if stage == "reference" and request.model.max_batch_size > 1:
        return MIXED
    return Script()


def test_a_batch_that_the_operator_chose_and_the_model_does_not_take_is_no_batch_dimension() -> None:
    cluster = Cluster(a_graph(), batches_fail)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert cluster.story[:4] == ["source", "reference", "reference", "convert onnx-fp32"]
    assert batching(cluster) == [(0, False)]
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 0
    words = "has an open first dimension, but answers a sample in a batch otherwise than alone, or not at all, so"
    assert cluster.condition("SourceResolved")["message"].endswith(f"; ocr.onnx {words} maxBatchSize is 0")
    (profile,) = requests(cluster, "profile", ProfileRequest)
    assert (profile.max_batch_size, profile.offline.batch_sizes, profile.online.batch_sizes) == (0, (1,), (1,))


def test_no_batch_dimension_stays_chosen_when_the_failed_job_is_gone() -> None:
    cluster = Cluster(a_graph(), batches_fail)
    cluster.settle()
    before = list(cluster.story)
    for job in cluster.of_kind("Job"):
        cluster.delete("Job", job["metadata"]["name"])
    cluster.settle()
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 0
    assert "reference" not in cluster.story[len(before) :]


def test_a_first_dimension_that_is_called_a_length_is_tried_as_one_first() -> None:
    cluster = served(a_graph(path="series.onnx"))
    assert cluster.story[:3] == ["source", "reference", "convert onnx-fp32"]
    assert batching(cluster) == [(0, False)]
    words = "has an open first dimension that seems to be a length, so maxBatchSize is 0; if it counts samples, set"
    assert cluster.condition("SourceResolved")["message"].endswith(f"; series.onnx {words} config.maxBatchSize")


@pytest.mark.parametrize(
    "asked", [{}, {"maxQueueDelay": "100us"}, {"preferredBatchSizes": [2]}], ids=["on", "delay", "sizes"]
)
def test_a_dimension_that_is_called_a_length_is_a_batch_if_the_spec_asks_for_batches(asked: dict[str, Any]) -> None:
    cluster = served(a_graph(path="series.onnx"))
    cluster.edit(models=[a_file("series.onnx", config={"dynamicBatching": asked})])
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 4
    cluster.edit(models=[a_file("series.onnx")])
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")


def test_an_object_that_an_older_operator_serves_one_by_one_keeps_that_until_its_next_edit() -> None:
    cluster = Cluster(a_graph(), batches_fail)
    cluster.until(lambda cluster: "resolved" in cluster.status)
    cluster.status["resolved"]["models"][0]["maxBatchSize"] = 1
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert batching(cluster) == [(1, False)]
    words = "has an open first dimension, but answers a sample in a batch otherwise than alone, or not at all, so"
    assert cluster.condition("SourceResolved")["message"].endswith(f"; ocr.onnx {words} maxBatchSize is 1")
    cluster.edit(source={"uri": "pvc://models/others"})
    cluster.settle()
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 0


@pytest.mark.parametrize(
    "spec",
    [
        a_graph(config={"maxBatchSize": 4}),
        a_graph(config={"dynamicBatching": {"preferredBatchSizes": [4]}}),
        a_graph(config={"dynamicBatching": {}}),
        a_graph() | {"performance": {"online": {"batchSize": 2, "concurrency": {"start": 1, "end": 2}}}},
        a_graph() | {"performance": {"offline": {"batchSizes": [1, 4]}}},
    ],
    ids=["size", "preferred sizes", "batcher", "request", "sweep"],
)
def test_a_batch_that_the_spec_asks_for_is_a_failure(spec: dict[str, Any]) -> None:
    cluster = Cluster(spec, batches_fail)
    cluster.settle()
    assert cluster.condition("Stalled")["reason"] == "BatchingUnsupported"
    assert cluster.story == ["source", "reference"]


def test_a_model_that_answers_a_single_sample_in_two_ways_is_not_tried_for_ever() -> None:
    cluster = Cluster(a_graph(), lambda stage, *_: MIXED if stage == "reference" else Script())
    cluster.settle()
    assert cluster.condition("Stalled")["reason"] == "BatchingUnsupported"
    assert cluster.story == ["source", "reference", "reference"]


@pytest.mark.parametrize("size", [0, 1, 16])
def test_what_the_spec_says_counts(size: int) -> None:
    cluster = served(a_graph(config={"maxBatchSize": size}))
    assert batching(cluster) == [(size, False)]
    assert "maxBatchSize" not in cluster.status["resolved"]["models"][0]
    assert [each.graphs for each in requests(cluster, "source", SourceRequest)] == [()]


def test_a_given_format_and_given_candidates_change_nothing() -> None:
    cluster = served(a_graph(format="onnx", candidates=[candidate("onnx-fp32")]))
    assert batching(cluster) == [(4, True)]
    assert cluster.status["resolved"]["models"] == [{"name": "ocr", "maxBatchSize": 4}]
    (source,) = requests(cluster, "source", SourceRequest)
    assert (source.models, source.graphs) == ((), ("ocr.onnx",))


def test_the_settings_of_the_batcher_stay() -> None:
    cluster = served(a_graph(config={"dynamicBatching": {"maxQueueDelay": "100us"}}))
    (request,) = requests(cluster, "convert", ConvertRequest)
    assert (request.config.max_queue_delay_microseconds, request.config.preferred_batch_sizes) == (100, (4,))


@pytest.mark.parametrize(
    "model",
    [
        {"format": "pyt", "entrypoint": "model.py", "path": None},
        {"format": None, "entrypoint": None, "path": "net.pt"},
        {"format": "ts-trace", "entrypoint": None, "path": "net.pt"},
    ],
    ids=str,
)
def test_all_other_models_are_served_one_sample_at_a_time(model: dict[str, Any]) -> None:
    given = a_model(candidates=[candidate("onnx-fp32")], config={}, **model)
    cluster = served(a_spec(models=[{name: value for name, value in given.items() if value is not None}]))
    assert batching(cluster) == [(1, False)]


def test_before_the_source_is_read_nothing_is_known() -> None:
    cluster = Cluster(a_graph(format="onnx"))
    cluster.act()
    cluster.act()
    assert "resolved" not in cluster.status
    assert cluster.story == ["source"]


def test_a_newer_operator_that_would_take_more_keeps_to_what_it_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = served(a_graph())
    before = list(cluster.story)
    monkeypatch.setattr(resolving, "DEFAULT_MAX_BATCH_SIZE", 8)
    cluster.settle()
    assert cluster.story == before
    cluster.edit(another_version())
    cluster.settle()
    assert cluster.status["resolved"]["models"][0]["maxBatchSize"] == 8


def test_one_in_the_spec_is_not_the_same_as_nothing() -> None:
    cluster = served(a_graph(config={"maxBatchSize": 1}))
    cluster.edit(models=[a_file("ocr.onnx")])
    cluster.settle()
    assert cluster.status["signature"]["maxBatchSize"] == 4


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            a_graph(path="fixed.onnx", config={"dynamicBatching": {}}),
            "config.dynamicBatching of model ocr needs a batch dimension, but the graph has none: remove it",
        ),
        (
            a_graph(config={"dynamicBatching": {"preferredBatchSizes": [4, 8]}}),
            "preferredBatchSizes of model ocr must not exceed maxBatchSize, which is 4: lower them, or set",
        ),
        (
            a_graph() | {"performance": {"offline": {"batchSizes": [1, 16]}}},
            "performance.offline.batchSizes and online.batchSize must not exceed maxBatchSize, which is 4",
        ),
        (
            a_graph() | {"performance": {"online": {"batchSize": 8, "concurrency": {"start": 1, "end": 2}}}},
            "must not exceed maxBatchSize, which is 4: lower them, or set config.maxBatchSize",
        ),
    ],
)
def test_what_the_batch_dimension_rules_out_stalls_before_the_framework_runs(spec: dict[str, Any], words: str) -> None:
    cluster = Cluster(spec)
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "InvalidSpec")
    assert words in stalled["message"]
    assert cluster.story == ["source"]
