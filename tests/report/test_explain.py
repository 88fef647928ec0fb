import copy

import pytest

from hack.docs import advice as generate_advice
from tests.report.subjects import golden, ready
from triton_converters.contract.reasons import Reason
from triton_plugin.explain import explain
from triton_plugin.subject import parse


def explained(case: str) -> str:
    return explain(parse(*golden(case)))


def test_a_ready_object_says_why_this_one_and_why_not_the_others() -> None:
    text = explain(ready())
    assert "TritonDeployment vision/digits is ready: digits serves, verified and measured." in text
    assert "The active revision is onnx-fp32 (onnx, fp32): 1400.0 inferences/s, p99 5000 us through its Service" in text
    assert "accuracy 0.98 (0.98 in the framework)" in text
    assert "Objectives: Throughput, in the online sweep.\n" in text
    assert "Constraints: P99LatencyMicroseconds at most 10000.\n" in text
    assert "Why onnx-fp32: onnx-fp32 at batch 1, concurrency 4: 2800 inferences/s, p99 5000 us" in text
    assert "33.3 % better than onnx-fp16." in text
    assert "Its best measurement is 50.0 % within P99LatencyMicroseconds maximum 10000." in text
    assert "Pareto-optimal: onnx-fp32." in text
    for name in ("onnx-fp16", "ts-trace-fp32", "ts-script-fp32"):
        assert f"  {name}: Passed: NotBest:" in text


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-candidate-meets-the-constraint", ["is stalled", "ConstraintsNotMet", "to do: No measured row keeps"]),
        ("candidate-failed", ["Failed", "to do:"]),
        ("unschedulable", ["Unschedulable", "to do: The message quotes the scheduler"]),
        (
            "new-object",
            ["The operator has not seen TritonDeployment", "Check that the operator runs: kubectl get pods"],
        ),
        ("converting-in-parallel", ["is in progress: Converted", "No revision is active."]),
        ("suspended", ["is waiting for you", "Suspended"]),
        (
            "awaiting-approval",
            ["is waiting for you: Selected: AwaitingApproval", "to do: Read the ranking", "    revision: "],
        ),
        ("approval-invalid", ["is stalled", "ApprovalInvalid", "to do: Take the key"]),
        ("performance-regression-blocks", ["is stalled", "PerformanceRegressed", "to do:", "stays active"]),
        (
            "performance-regressed",
            ["Regression check: PerformanceRegressed", "to do: The message has"],
        ),
        (
            "kept",
            [
                "Why ts-trace-fp32",
                "the active revision is kept",
                "onnx-fp16: Passed: Passed: it has the best measurement",
            ],
        ),
        (
            "closest-selected",
            ["spec.selection.fallback selects the closest", "25.0 % beyond P99LatencyMicroseconds maximum 4000"],
        ),
        (
            "second-part-of-a-search",
            ["is in progress: Selected: Searching", "running, 24 measurements in a space of 30 points"],
        ),
        ("search-failed", ["ts-trace-fp32: Failed, 0 measurements", "best: max batch 8, 3 instances"]),
    ],
)
def test_what_is_in_the_way_and_what_to_do(case: str, words: list[str]) -> None:
    text = explained(case)
    assert [word for word in words if word not in text] == [], text


def test_an_old_status_is_said_to_be_old() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["metadata"]["generation"] = 2
    text = explain(parse(body, results))
    assert "has not processed generation 2 of the spec yet; what follows describes generation 1." in text
    assert "is ready" not in text


def test_a_source_that_could_not_be_compared_with_the_last_is_said_to_be_one() -> None:
    body, results = copy.deepcopy(golden("ready"))
    measured = next(each for each in body["status"]["conditions"] if each["type"] == "PerformanceMeasured")
    measured |= {"reason": "NotCompared", "message": "not compared with source sha256:12: processor differs"}
    text = explain(parse(body, results))
    assert "Regression check: NotCompared: not compared with source sha256:12: processor differs." in text
    assert "to do: Nothing is wrong" in text


def test_every_reason_that_stops_somebody_has_advice() -> None:
    members = list(Reason)
    stopping = members[members.index(Reason.INVALID_SPEC) :]
    told = {str(reason) for reason in stopping} - {"NotBest", "Passed"}
    assert told - generate_advice.advice().keys() == set()
