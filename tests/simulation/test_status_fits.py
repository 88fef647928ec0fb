"""Whatever Jobs answer, there is a status of it that the API server takes, and that says what was left out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import answers
from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import MetricsResult, ReferenceResult, Tensor
from triton_operator.api.fitting import LARGEST_NUMBER, LONGEST_TEXT
from triton_operator.api.search_status import BatchingStatus
from triton_operator.api.status import CandidateStatus, TensorStatus, timestamp
from triton_operator.api.status import MetricValue as Metric
from triton_operator.effects import Statement, conditions_of
from triton_operator.kube.bodies import event_body


def answering(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Let `change` change what every Job answers."""
    usual = answers._result
    monkeypatch.setattr(answers, "_result", lambda *arguments: change(usual(*arguments)))


def computing(monkeypatch: pytest.MonkeyPatch, framework: float | None = None, **values: float) -> None:
    """Let the metrics Job compute these of all served outputs, and of the framework's unless each is ``framework``."""
    names, numbers = tuple(sorted(values)), tuple(values[name] for name in sorted(values))

    def change(result: Any) -> Any:
        if not isinstance(result, MetricsResult):
            return result
        own = numbers if framework is None else (framework,) * len(numbers)
        return MetricsResult(names, own, tuple(replace(each, values=numbers) for each in result.candidates))

    answering(monkeypatch, change)


def test_of_too_many_metrics_those_with_a_threshold_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    computing(monkeypatch, accuracy=0.98, **{f"a_recall_{number:02}": 0.9 for number in range(20)})
    cluster = a_deployment().serving().cluster()
    found = cluster.candidate("onnx-fp32")
    assert len(found["metrics"]) == 16
    assert found["metrics"][0]["metric"] == "accuracy"
    assert found["omittedMetrics"] == 5
    assert [each["metric"] for each in cluster.status["accuracy"]][:2] == ["accuracy", "a_recall_00"]
    assert len(cluster.status["accuracy"]) == 16


def test_a_metric_that_failed_is_shown_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    computing(monkeypatch, framework=0.98, bad=0.1, **{f"a_good_{number:02}": 0.98 for number in range(15)})
    thresholds = [{"metric": f"a_good_{number:02}", "min": 0.95} for number in range(15)]
    cluster = (
        a_deployment()
        .asking(accuracy={"thresholds": [*thresholds, {"metric": "bad", "min": 0.95}]})
        .settled()
        .cluster()
    )
    assert cluster.condition("Stalled")["reason"] == "AllCandidatesFailed"
    assert cluster.candidate("onnx-fp32")["metrics"][0] == {"metric": "bad", "value": "0.1"}


def test_a_model_of_a_hundred_inputs_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = tuple(Tensor(f"feature_{number:03}", "FP32", (1,)) for number in range(100))

    def wide(result: Any) -> Any:
        if not isinstance(result, ReferenceResult):
            return result
        return replace(result, signature=replace(result.signature, inputs=tensors))

    answering(monkeypatch, wide)
    cluster = a_deployment().serving().cluster()
    signature = cluster.status["signature"]
    assert [len(signature["inputs"]), signature["omitted"]] == [64, 36]


def test_a_search_may_find_as_many_preferred_sizes_as_a_spec_may_have() -> None:
    sizes = list(range(1, 17))
    found = BatchingStatus(preferred_batch_sizes=[*sizes, 17, 18])
    assert found.preferred_batch_sizes == sizes


@pytest.mark.parametrize("letter", ["a", "€", "🙂", "\ud800"])
def test_a_text_of_any_length_and_any_characters_fits(letter: str) -> None:
    candidate = CandidateStatus(name="a", state="Failed", message=letter * 5000, metrics=[])
    assert len(candidate.message) <= 1024
    candidate.model_dump_json().encode()
    assert len(Metric(metric=letter * 5000, value="1").metric) <= LONGEST_TEXT
    assert CandidateStatus.model_validate(candidate.model_dump()) == candidate, "cutting twice is cutting once"


def test_a_number_of_any_size_fits() -> None:
    tensor = TensorStatus(name="x", data_type="FP32", dims=[10**400, -(10**400), -1] + [1] * 20)
    assert tensor.dims[:3] == [LARGEST_NUMBER, -LARGEST_NUMBER, -1]
    assert len(tensor.dims) == 16


def test_messages_of_conditions_and_events_fit(serving: Cluster) -> None:
    text = "what happened " + "\ud800€" * 2000 + " what to do"
    (said,) = conditions_of([Statement("Ready", False, Reason.CRASHED, text)], [], 1, serving.now)
    assert said.message.startswith("what happened")
    assert said.message.endswith("what to do")
    said.message.encode()
    owner = serving.body()
    owner["metadata"]["resourceVersion"] = "1"
    event = event_body(owner, "Warning", "Crashed", text, serving.now)
    assert len(event["message"].encode()) <= 1024
    assert event["message"].endswith("what to do")
    assert event["firstTimestamp"] == timestamp(serving.now)
