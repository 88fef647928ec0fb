"""INT8: what is asked of the Jobs for it, by whom it is judged, and what the status says of it."""

from dataclasses import replace
from typing import Any

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, candidate
from tests.simulation.test_formats import jobs
from tests.states.deployment import State, a_deployment
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.measurement_requests import MetricsRequest
from triton_converters.contract.quantization import Quantization, calibration
from triton_converters.contract.reasons import Reason

QUANTIZATION = {"calibrationSamples": 16, "excludedOperators": ["Softmax", "Gemm", "Softmax"]}


def asked(*names: str, **quantization: Any) -> State:
    """A model with candidates in fp32 and INT8."""
    int8 = candidate("onnx-int8") | ({"quantization": quantization} if quantization else {})
    return a_deployment().asking(models=[a_model(candidates=[*map(candidate, names), int8])])


def requests(cluster: Cluster, stage: str, kind: Any) -> list[Any]:
    bodies = [body["spec"]["template"]["spec"]["containers"][0]["args"][-1] for body in jobs(cluster, stage)]
    return [kind.from_json(each) for each in bodies]


def until(cluster: Cluster, stage: str) -> Cluster:
    """Passes and steps until a Job of the stage is there."""
    for _ in range(80):
        cluster.act()
        if jobs(cluster, stage):
            return cluster
        cluster.step()
    raise AssertionError(f"no Job of {stage} in {cluster.story}")


def of_int8(cluster: Cluster) -> ConvertRequest:
    (found,) = [each for each in requests(cluster, "convert", ConvertRequest) if each.precision == "int8"]
    assert isinstance(found, ConvertRequest)
    return found


def test_only_the_conversion_to_int8_is_asked_to_quantize() -> None:
    cluster = until(asked("onnx-fp32", **QUANTIZATION).cluster(), "convert")
    one, other = sorted(requests(cluster, "convert", ConvertRequest), key=lambda each: each.precision)
    assert (one.precision, one.quantization) == ("fp32", None)
    assert "quantization" not in one.to_json()
    assert (other.precision, other.quantization) == ("int8", Quantization(16, ("Gemm", "Softmax")))


def test_the_status_tells_what_the_graph_is_like() -> None:
    cluster = asked("onnx-fp32").settled().cluster()
    found = cluster.candidate("onnx-int8")
    assert found["state"] == "Selected"
    assert found["members"] == ["onnx-int8-none"]
    assert found["quantization"] == {
        "method": "Static",
        "operators": 41,
        "int8Operators": 38,
        "signalToNoise": "39.6",
        "speedup": "3.06",
        "calibrationSamples": 32,
    }
    assert "quantization" not in cluster.candidate("onnx-fp32")
    assert cluster.status["serving"]["precision"] == "int8"


def test_what_calibrates_is_left_out_of_the_metrics_of_all_candidates() -> None:
    cluster = asked("onnx-fp32", calibrationSamples=16).until_active("profile").until_active("metrics").cluster()
    of_the_framework, request = requests(cluster, "metrics", MetricsRequest)
    assert (len(of_the_framework.candidates), len(request.candidates)) == (0, 2)
    assert of_the_framework.calibration_samples == request.calibration_samples == 16
    cluster.settle()
    words = "16 of 64 samples calibrate INT8, and no candidate's metrics are computed of them"
    assert words in cluster.condition("Verified")["message"]
    assert [each["samples"] for each in cluster.status["accuracy"]] == [48]


def test_without_int8_nothing_is_left_out_nor_said() -> None:
    cluster = a_deployment().one_candidate().until_active("profile").until_active("metrics").cluster()
    for request in requests(cluster, "metrics", MetricsRequest):
        assert "calibration_samples" not in request.to_json()
    cluster.settle()
    assert "INT8" not in cluster.condition("Verified")["message"]
    assert [each["samples"] for each in cluster.status["accuracy"]] == [64]


def test_at_most_half_of_the_samples_calibrate_and_those_of_fewer_are_among_them() -> None:
    assert len(calibration(64, 1000)) == 32
    assert calibration(64, 8) < calibration(64, 16)
    assert calibration(1, 64) == frozenset()
    assert calibration(64, 0) == frozenset()
    # A dataloader that yields one class after the other must not calibrate by the first of them alone.
    assert {number // 16 for number in calibration(64, 8)} == {0, 1, 2, 3}


def test_another_set_of_samples_makes_another_file_of_int8_alone() -> None:
    few, many = (
        until(
            a_deployment()
            .asking(
                models=[a_model(candidates=[candidate("onnx-fp32"), candidate("onnx-int8")])],
                accuracy={"maxSamples": most, "thresholds": [{"metric": "accuracy", "min": 0.9}]},
            )
            .cluster(),
            "convert",
        )
        for most in (100, 200)
    )
    # Of a graph of code, whose example batches are the same, only what is calibrated changes.
    keys = [
        {each.precision: each.conversion_key for each in requests(one, "convert", ConvertRequest)}
        for one in (few, many)
    ]
    assert keys[0]["int8"] != keys[1]["int8"]


def test_a_graph_that_gains_nothing_stops_no_other_candidate() -> None:
    said = "INT8 gains nothing for this model on this processor: static of all operators: 0.90 times as fast as fp32"
    script = Script(exit_code=42, reason=Reason.GAINS_NOTHING, message=said)
    cluster = asked("onnx-fp32").faring(when("convert", script, "onnx-int8")).settled().cluster()
    failed = cluster.candidate("onnx-int8")
    assert (failed["state"], failed["reason"], failed["message"]) == ("Failed", "GainsNothing", said)
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"


def test_a_metric_refuses_it() -> None:
    cluster = asked("onnx-fp32").faring(when("metrics", Script(accuracy=0.5))).settled().cluster()
    refused = cluster.candidate("onnx-int8")
    assert (refused["state"], refused["reason"]) == ("Failed", "ThresholdNotMet")


def test_the_request_is_the_same_for_the_same_quantization() -> None:
    default = of_int8(until(asked().cluster(), "convert"))
    written = of_int8(until(asked(calibrationSamples=64).cluster(), "convert"))
    assert default.quantization == Quantization(64)
    assert replace(default, candidate="") == replace(written, candidate="")
