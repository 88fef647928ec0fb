"""The user's metrics of the framework's outputs and of what profiles kept, from the request to the result."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.run_stage import run_metrics
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.replay import read_result, write_result
from triton_converters.claim_store.revision import model_file
from triton_converters.claim_store.served_outputs import CHUNK, FOLDER, read_outputs, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import KeptOutputs, MetricsRequest
from triton_converters.contract.quantization import calibration
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    CandidateMetrics,
    Environment,
    MetricsResult,
    ProfileResult,
    ReferenceResult,
    Signature,
    Tensor,
)
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllComputed, Computed
from triton_converters.stages import answers
from triton_converters.stages.metrics import produce, publish

SOURCE, REFERENCE, KEY = "d" * 64, "e" * 16, "f" * 16
CODE = """
class MetricsCalculator:
    def __init__(self, precision, output_format):
        self.precision, self.output_format = precision, output_format

    def calc(self, *, ids, y_pred, x, y_real):
        print(self.precision, self.output_format)
        if self.precision == "fp16":
            raise ValueError("no fp16 here")
        hits = y_pred["SCORES"].argmax(axis=1) == y_real["LABEL"]
        return {"top1": hits.mean(), "samples": len(ids), "odd": float("nan")}
"""
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "", ())
SCORES = numpy.eye(3, dtype=numpy.float32)[[0, 1, 2, 0, 1, 2]]


@pytest.fixture
def claim(mount: Path) -> Path:
    """A claim with a source and a reference of six samples in two batches, where the framework is always right."""
    source, reference = layout.source_directory(SOURCE), layout.reference_directory(REFERENCE)
    source.mkdir(parents=True)
    (source / "metrics.py").write_text(CODE)
    labels = SCORES.argmax(axis=1)
    for number, rows in enumerate((slice(0, 4), slice(4, 6))):
        ids = numpy.arange(6)[rows]
        write_batch(
            reference, number, Batch(ids, {"X": SCORES[rows]}, {"LABEL": labels[rows]}, {"SCORES": SCORES[rows]})
        )
    signature = Signature((Tensor("X", "FP32", (3,)),), (Tensor("SCORES", "FP32", (3,)),), 4)
    write_result(reference, "reference", REFERENCE, ReferenceResult(signature, 6, 2, 1.0))
    return mount


def keep(profile: str, scores: Any) -> None:
    """What a profile leaves."""
    directory = layout.measurement_directory(profile)
    directory.mkdir(parents=True)
    write_outputs(directory / FOLDER, [{"SCORES": row} for row in scores])
    write_result(directory, "profile", profile, ProfileResult(True, "Passed", "", 0.0, 6, (), (), ENVIRONMENT))


def request(*candidates: KeptOutputs, required: tuple[str, ...] = ()) -> MetricsRequest:
    return MetricsRequest(KEY, SOURCE, REFERENCE, "pyt", 4, Entrypoint("metrics.py", {}), candidates, required)


def test_every_set_of_outputs_has_its_metrics(claim: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keep("right", SCORES)
    keep("wrong", SCORES[[0, 0, 0, 0, 0, 0]])
    result = run_metrics(request(KeptOutputs("right", "onnx", "fp32"), KeptOutputs("wrong", "trt", "fp32")))
    assert result.metrics == ("odd", "samples", "top1")
    assert result.framework == (None, 6.0, 1.0)
    assert result.candidates == (
        CandidateMetrics("right", (None, 6.0, 1.0)),
        CandidateMetrics("wrong", (None, 6.0, pytest.approx(1 / 3))),
    )
    assert capfd.readouterr().out.splitlines() == ["fp32 pyt", "fp32 onnx", "fp32 trt"], "the framework's only once"
    directory = layout.measurement_directory(KEY)
    stored = read_result(directory, "metrics", KEY, MetricsResult)
    assert stored.candidates[1].values[2] == pytest.approx(1 / 3, rel=1e-6)
    assert [path.name for path in directory.iterdir()] == ["result.json"]


def test_without_candidates_the_frameworks_metrics_are_computed_alone(claim: Path) -> None:
    """So it is judged before anything is converted, also by images that are older than the operator."""
    assert run_metrics(request(required=("top1",))) == MetricsResult(("odd", "samples", "top1"), (None, 6.0, 1.0), ())


def test_samples_that_calibrate_are_left_out_of_every_set(claim: Path) -> None:
    keep("right", SCORES)
    left_out = calibration(6, 2)
    assert len(left_out) == 2
    wrong = SCORES.copy()
    wrong[sorted(left_out)] = SCORES[[(number + 1) % 3 for number in sorted(left_out)]]
    keep("wrong where it does not count", wrong)
    candidates = KeptOutputs("right", "onnx", "fp32"), KeptOutputs("wrong where it does not count", "onnx", "int8")
    result = run_metrics(replace(request(*candidates), calibration_samples=2))
    assert result.framework == (None, 4.0, 1.0)
    assert [each.values for each in result.candidates] == [(None, 4.0, 1.0)] * 2


def test_requests_that_calibrate_are_left_out_without_a_batch_dimension(claim: Path) -> None:
    """Each batch is one sample then; the reference has two."""
    reference = layout.reference_directory(REFERENCE)
    signature = Signature((Tensor("X", "FP32", (-1, 3)),), (Tensor("SCORES", "FP32", (-1, 3)),), 0)
    write_result(reference, "reference", REFERENCE, ReferenceResult(signature, 2, 2, 1.0))
    directory = layout.measurement_directory("whole")
    directory.mkdir(parents=True)
    write_outputs(directory / FOLDER, [{"SCORES": SCORES[0:4]}, {"SCORES": SCORES[4:6]}])
    write_result(directory, "profile", "whole", ProfileResult(True, "Passed", "", 0.0, 2, (), (), ENVIRONMENT))
    asked = request(KeptOutputs("whole", "onnx", "int8"))
    result = run_metrics(replace(asked, max_batch_size=0, calibration_samples=1))
    assert calibration(2, 1) == {0}
    assert result.framework == (None, 2.0, 1.0)
    assert result.candidates[0].values == (None, 2.0, 1.0)


def test_more_metrics_than_are_kept_fail_nothing(claim: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One of a metric's names is too long to be kept, as is the document if it holds all metrics of all sets."""
    many = CODE.replace(
        'return {"top1"', 'return {f"per_sample_{n:06}": 1.0 for n in range(20_000)} | {"x" * 2**21: 1.0, "top1"'
    )
    (layout.source_directory(SOURCE) / "metrics.py").write_text(many)
    keep("one", SCORES)
    keep("other", SCORES)
    candidates = KeptOutputs("one", "onnx", "fp32"), KeptOutputs("other", "trt", "fp32")
    result = run_metrics(request(*candidates, required=("top1",)))
    assert result.metrics == ("odd", *(f"per_sample_{n:06}" for n in range(62)), "top1")
    assert result.framework[-1] == result.candidates[1].values[-1] == 1.0
    assert "metrics.py: MetricsCalculator returned 20004 metrics, of which 64 are kept" in capfd.readouterr().out


def test_a_candidates_failure_may_have_any_length(claim: Path) -> None:
    code = CODE.replace('"no fp16 here"', '"no fp16 here" + "x" * 2**21')
    (layout.source_directory(SOURCE) / "metrics.py").write_text(code)
    keep("half", SCORES)
    (half,) = run_metrics(request(KeptOutputs("half", "trt", "fp16"))).candidates
    assert half.reason == "MetricFailed"
    assert half.message.startswith("metrics.py:9: ValueError: no fp16 here")


def test_what_fails_for_one_candidate_is_its_own(claim: Path) -> None:
    keep("half", SCORES)
    keep("right", SCORES)
    result = run_metrics(request(KeptOutputs("half", "trt", "fp16"), KeptOutputs("right", "onnx", "fp32")))
    half, right = result.candidates
    assert (half.values, half.reason) == ((), "MetricFailed")
    assert half.message == "metrics.py:9: ValueError: no fp16 here"
    assert (right.values, right.reason) == ((None, 6.0, 1.0), "")


@pytest.mark.parametrize("content", [b"no zip", b""])
def test_kept_outputs_that_are_broken_are_their_candidates_own_failure(claim: Path, content: bytes) -> None:
    keep("broken", SCORES)
    keep("right", SCORES)
    (layout.measurement_directory("broken") / "served/000000.npz").write_bytes(content)
    result = run_metrics(request(KeptOutputs("broken", "onnx", "fp32"), KeptOutputs("right", "onnx", "fp32")))
    broken, right = result.candidates
    assert (broken.values, broken.reason) == ((), "MetricFailed")
    assert "are broken: " in broken.message
    assert (right.values, right.reason) == ((None, 6.0, 1.0), "")


def test_what_fails_for_the_framework_fails_the_stage(claim: Path) -> None:
    (layout.source_directory(SOURCE) / "metrics.py").write_text(CODE.replace('== "fp16"', '== "fp32"'))
    keep("right", SCORES)
    with pytest.raises(StageError) as caught:
        run_metrics(request(KeptOutputs("right", "onnx", "fp32")))
    assert caught.value.reason is Reason.METRIC_FAILED
    assert not layout.measurement_directory(KEY).exists()


@pytest.mark.parametrize("missing", ["sources", "references", "result.json", "served"])
def test_an_input_that_is_missing_is_found_at_once(claim: Path, missing: str) -> None:
    keep("right", SCORES)
    path = next(claim.rglob(f"measurements/*/{missing}"), claim / missing)
    path.rename(claim / "gone")
    with pytest.raises(StageError) as caught:
        run_metrics(request(KeptOutputs("right", "onnx", "fp32")))
    assert (caught.value.reason, caught.value.final) == (Reason.INPUT_MISSING, False)


def publish_file(revision: str, factor: float, answer: int = TensorProto.FLOAT) -> None:
    """What a conversion leaves of a model that answers its input times a factor, in a type of ONNX."""
    file = model_file(revision, "digits", "onnx")
    file.parent.mkdir(parents=True)
    types = {"X": TensorProto.FLOAT, "SCORES": answer}
    tensors = [helper.make_tensor_value_info(name, each, ["N", 3]) for name, each in types.items()]
    constant = helper.make_tensor("factor", TensorProto.FLOAT, [], [factor])
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["X", "factor"], ["product"]),
            helper.make_node("Cast", ["product"], ["SCORES"], to=answer),
        ],
        "g",
        tensors[:1],
        tensors[1:],
        [constant],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def asked_outside(*candidates: KeptOutputs) -> MetricsRequest:
    return replace(request(*candidates), model_name="digits")


def test_a_converted_file_has_its_metrics_outside_triton_and_its_outputs(claim: Path) -> None:
    """So a wrong file is told from a server that answers wrongly."""
    keep("served-right", SCORES)
    publish_file("a" * 16, -1.0)
    result = run_metrics(asked_outside(KeptOutputs("served-right", "onnx", "fp32", "a" * 16)))
    assert result.candidates == (
        CandidateMetrics("served-right", (None, 6.0, 1.0), converted=(None, 6.0, pytest.approx(0.0))),
    )
    kept = list(read_outputs(layout.measurement_directory(KEY) / layout.CONVERTED / "served-right"))
    numpy.testing.assert_array_equal([each["SCORES"] for each in kept], -SCORES)


def test_what_has_no_file_that_runs_outside_triton_has_the_served_metrics_alone(claim: Path) -> None:
    keep("steps", SCORES)
    keep("gone", SCORES)
    result = run_metrics(
        asked_outside(KeptOutputs("steps", "triton-python+onnx", "fp32"), KeptOutputs("gone", "onnx", "fp32", "b" * 16))
    )
    assert result.candidates == (
        CandidateMetrics("steps", (None, 6.0, 1.0)),
        CandidateMetrics("gone", (None, 6.0, 1.0)),
    )


def test_samples_that_calibrate_are_left_out_outside_triton_too(claim: Path) -> None:
    keep("right", SCORES)
    publish_file("a" * 16, 1.0)
    asked = replace(asked_outside(KeptOutputs("right", "onnx", "fp32", "a" * 16)), calibration_samples=2)
    (candidate,) = run_metrics(asked).candidates
    assert candidate.converted == (None, 4.0, 1.0)
    assert len(list(read_outputs(layout.measurement_directory(KEY) / layout.CONVERTED / "right"))) == 4


@pytest.mark.parametrize(
    ("factor", "seconds", "said"),
    [(None, 60, "outside Triton: "), (1.0, -1, "no metrics, because all files together had -1 s")],
)
def test_a_file_that_does_not_run_outside_triton_costs_a_figure_alone(
    claim: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    factor: float | None,
    seconds: int,
    said: str,
) -> None:
    for module in (produce, answers):
        monkeypatch.setattr(module, "OUTSIDE_SECONDS", seconds)
    keep("right", SCORES)
    publish_file("a" * 16, factor or 0.0)
    if factor is None:
        model_file("a" * 16, "digits", "onnx").write_bytes(b"no graph")
    result = run_metrics(asked_outside(KeptOutputs("right", "onnx", "fp32", "a" * 16)))
    assert result.candidates == (CandidateMetrics("right", (None, 6.0, 1.0)),)
    assert said in capfd.readouterr().out


def test_outputs_of_another_type_than_the_reference_s_are_not_kept(claim: Path) -> None:
    """They would not be published, and with them nothing of the other candidates."""
    keep("right", SCORES)
    publish_file("a" * 16, 1.0, TensorProto.DOUBLE)
    (candidate,) = run_metrics(asked_outside(KeptOutputs("right", "onnx", "fp32", "a" * 16))).candidates
    assert candidate.converted == (None, 6.0, 1.0)
    assert not (layout.measurement_directory(KEY) / layout.CONVERTED).exists()


def test_what_a_file_answers_beyond_the_limit_is_not_kept(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "KEPT_BYTES", SCORES.nbytes - 1)
    keep("right", SCORES)
    publish_file("a" * 16, 1.0)
    (candidate,) = run_metrics(asked_outside(KeptOutputs("right", "onnx", "fp32", "a" * 16))).candidates
    assert candidate.converted == (None, 6.0, 1.0)
    assert not (layout.measurement_directory(KEY) / layout.CONVERTED).exists()


def test_outputs_of_other_tensors_are_not_published(claim: Path) -> None:
    keep("right", SCORES)
    asked = asked_outside(KeptOutputs("right", "onnx", "fp32", "a" * 16))
    write_outputs(layout.INCOMING_MOUNT / layout.CONVERTED / "right", [{"OTHER": row} for row in SCORES])
    with pytest.raises(StageError, match="does not hold the outputs of 6 samples"):
        computed(layout.INCOMING_MOUNT, AllComputed(Computed({}), (Computed({}),)), asked)
    assert not layout.measurement_directory(KEY).exists()


def test_kept_outputs_are_read_in_order_whatever_their_shapes(tmp_path: Path) -> None:
    outputs = [{"Y": numpy.full(number % 5, number), "Z": numpy.array(number)} for number in range(2 * CHUNK + 3)]
    write_outputs(tmp_path / FOLDER, outputs)
    found = list(read_outputs(tmp_path / FOLDER))
    assert len(found) == len(outputs)
    for given, kept in zip(outputs, found, strict=True):
        assert given.keys() == kept.keys()
        for name in given:
            numpy.testing.assert_array_equal(given[name], kept[name])


def computed(incoming: Path, found: AllComputed | str, asked: MetricsRequest) -> MetricsResult:
    """The result of what user code left."""
    if isinstance(found, str):
        (incoming / documents.METRICS).write_text(found)
    else:
        documents.write(incoming, documents.METRICS, found)
    documents.write_end(incoming, documents.End())
    return publish.run(asked, incoming)


def test_the_names_and_values_of_user_code_are_bounded(mount: Path) -> None:
    values = {f"m{number:03}": 1.0 for number in range(200)}
    odd = {"\x1b[2J": 1.0, "x" * 64: 1.0, "": 1.0, "text": "1.0", "list": [1], "true": True, "none": None, "zz": 3}
    found = AllComputed(Computed(values | odd), (Computed(odd),))
    asked = request(KeptOutputs("p", "onnx", "fp32"), required=("zz", "text", "m150", "never"))
    result = computed(layout.INCOMING_MOUNT, found, asked)
    assert len(result.metrics) == 64
    assert {"zz", "text", "m150"} <= set(result.metrics)
    assert "never" not in result.metrics
    by_name = dict(zip(result.metrics, result.framework, strict=True))
    assert (by_name["zz"], by_name["text"], by_name["m000"]) == (3.0, None, 1.0)
    assert all(0 < len(name) <= 63 and name.isprintable() for name in result.metrics)


def test_a_metric_with_a_threshold_is_exact_and_any_other_has_seven_digits(mount: Path) -> None:
    values = Computed({"judged": 1 / 3, "other": 1 / 3})
    asked = request(KeptOutputs("p", "onnx", "fp32"), required=("judged",))
    result = computed(layout.INCOMING_MOUNT, AllComputed(values, (values,)), asked)
    assert result.framework == result.candidates[0].values == (1 / 3, 0.3333333)


def test_a_reason_that_is_not_for_user_code_to_give_is_a_crash(mount: Path) -> None:
    failed = Computed({}, "said by user code", Reason.REPOSITORY_DAMAGED)
    found = AllComputed(Computed({"a": 1.0}), (failed,))
    result = computed(layout.INCOMING_MOUNT, found, request(KeptOutputs("p", "onnx", "fp16")))
    assert (result.candidates[0].reason, result.candidates[0].message) == ("Crashed", "said by user code")


def test_a_message_of_user_code_is_short_and_plain(mount: Path) -> None:
    failed = Computed({}, "\x1b[2J" + "x" * 100_000, Reason.METRIC_FAILED)
    result = computed(
        layout.INCOMING_MOUNT, AllComputed(Computed({"a": 1.0}), (failed,)), request(KeptOutputs("p", "onnx", "fp16"))
    )
    (candidate,) = result.candidates
    assert len(candidate.message) <= 200
    assert candidate.message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"framework": {"values": {"a": NaN}}, "candidates": [{"values": {}}]}',
        '{"framework": {"values": {"a": 1e999}}, "candidates": [{"values": {}}]}',
        '{"framework": {"values": {"a": 1.0}}, "candidates": []}',
        '{"framework": {"values": {"a": 1.0}}, "candidates": [{"values": {}}, {"values": {}}]}',
        '{"framework": {"values": {"\\ud800": 1.0}}, "candidates": [{"values": {}}]}',
        '{"framework": {"values": {}}, "candidates": [{"values": {}, "reason": "Fine"}]}',
        json.dumps({"framework": {"values": {"a" * 2**21: 1.0}}, "candidates": [{"values": {}}]}),
    ],
)
def test_what_is_no_table_of_metrics_is_refused(mount: Path, text: str) -> None:
    with pytest.raises(StageError) as caught:
        computed(layout.INCOMING_MOUNT, text, request(KeptOutputs("p", "onnx", "fp32")))
    assert caught.value.reason is Reason.CRASHED
    assert not layout.measurement_directory(KEY).exists()


def table(metrics: int, candidates: int) -> MetricsResult:
    """Figures of its own: what repeats costs nothing in a deflated message."""
    random = Random(1)

    def values() -> tuple[float, ...]:
        return tuple(random.random() for _ in range(metrics))

    names = tuple(f"intersection_over_union_of_class_{number:03}" for number in range(metrics))
    rows = tuple(CandidateMetrics(f"{number:016x}", values()) for number in range(candidates))
    return MetricsResult(names, values(), rows)


def test_metrics_that_are_not_required_give_way_to_the_limit_of_a_message() -> None:
    full = table(64, 16)
    required = (full.metrics[-1], full.metrics[3])
    kept = publish.fit(KEY, full, required)
    assert set(required) <= set(kept.metrics)
    assert 2 < len(kept.metrics) < 64
    assert len({len(kept.metrics), len(kept.framework), *(len(each.values) for each in kept.candidates)}) == 1
    index = full.metrics.index(required[0])
    assert kept.candidates[5].values[-1] == full.candidates[5].values[index]
    Outcome("metrics", KEY, kept).to_json()


def test_sixteen_thresholds_of_sixteen_candidates_fit() -> None:
    full = table(16, 16)
    assert publish.fit(KEY, full, full.metrics) == full
    Outcome("metrics", KEY, full).to_json()
