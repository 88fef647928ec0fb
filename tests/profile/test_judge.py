"""The gates in turn; a profile holds requests of other sizes against the scale of the whole reference."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import onnx
import pytest

from triton_converters.claim_store.dump import SIZES, Batch, write_batch
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, ServedModel, Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import candidate
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate
from triton_converters.stages.profile import produce

RANDOM = numpy.random.default_rng(4)
SIGNATURE = Signature((Tensor("X", "FP32", (-1, 10)),), (Tensor("Y", "FP32", (-1, 10)),), 0)


@pytest.mark.parametrize("off", [0.15, 30.0])
def test_one_scale_judges_requests_of_every_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    monkeypatch.setattr(layout.reference_directory, "__defaults__", (tmp_path,))
    home = layout.reference_directory("f")
    for place, number, rows, size in [(home, 0, 4, 300), (home, 1, 4, 300), (home / SIZES, 0, 3, 3)]:
        array = RANDOM.normal(0, size, (rows, 10)).astype(numpy.float32)
        write_batch(place, number, Batch(numpy.arange(1), {"X": array}, {}, {"Y": array}))
    server: Any = SimpleNamespace(
        signature=lambda: SIGNATURE, infer=lambda inputs, outputs: {"Y": inputs["X"] + numpy.float32(off)}
    )
    request: Any = SimpleNamespace(
        members=(), model_name="m", format="onnx", precision="fp16", revision="r", reference="f", max_batch_size=0,
        tolerance=DEFAULT_TOLERANCES["fp16"], keep_outputs=False,
    )  # fmt: skip
    monkeypatch.setattr(produce, "model_file", lambda *_: Path())
    monkeypatch.setattr(candidate, "check_precision", lambda *_: None)
    served = produce._candidate(request, server, SimpleNamespace(signature=SIGNATURE, samples=2))
    failed = candidate.judge(served)
    assert (failed is None) is (off < 1), failed
    assert served.answers is not None
    assert served.answers.requests == 3


def a_candidate(**changes: Any) -> ServedCandidate:
    """One that passes."""
    x = numpy.ones((1, 10), numpy.float32)
    facts: dict[str, Any] = {
        "declared": lambda: SIGNATURE,
        "infer": lambda inputs, outputs: {"Y": inputs["X"]},
        "signature": SIGNATURE,
        "precision": "fp32",
        "tolerance": DEFAULT_TOLERANCES["fp32"],
        "scales": dict,
        "batches": [Batch(numpy.arange(1), {"X": x}, {}, {"Y": x})],
        "sizes": (),
        "files": (),
        "published_types": (),
        "keep_outputs": False,
        "engine_caches": (),
    }
    return ServedCandidate(**facts | changes)


def refuses(inputs: object, outputs: object) -> Any:
    raise StageError(Reason.INFERENCE_FAILED, "tritonserver refused a request")


def of_halves(path: Path) -> None:
    weights = onnx.numpy_helper.from_array(numpy.ones(2, numpy.float16), "w")
    node = onnx.helper.make_node("Identity", ["w"], ["Y"])
    output = onnx.helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT16, [2])
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [output], [weights])), str(path))


@pytest.mark.parametrize(("noise", "passes"), [(0.02, True), (0.05, False)])
def test_int8_is_judged_by_the_noise_of_a_whole_output(noise: float, passes: bool) -> None:
    """34 and 26 dB, in which single elements are off by more than any tolerance of other precisions allows."""
    random = numpy.random.default_rng(5)
    x = random.standard_normal((64, 1, 10)).astype(numpy.float32)
    added = (noise * random.standard_normal(x.shape)).astype(numpy.float32)
    answers = {row.tobytes(): row + more for row, more in zip(x, added, strict=True)}
    batches = [Batch(numpy.array([number]), {"X": row}, {}, {"Y": row}) for number, row in enumerate(x)]
    served = a_candidate(
        precision="int8",
        tolerance=DEFAULT_TOLERANCES["int8"],
        scales=lambda: scales_of(batches, False, DEFAULT_TOLERANCES["int8"], "int8"),
        batches=batches,
        infer=lambda inputs, outputs: {"Y": answers[inputs["X"].tobytes()]},
    )
    failed = candidate.judge(served)
    assert (failed is None) is passes
    assert passes or (failed is not None and "; the signal-to-noise ratio is 26" in failed.message)
    assert passes or (failed is not None and failed.message.endswith("dB, and INT8 needs 30 dB"))


FILES = ("halves.onnx", "none.onnx")
FAILING: dict[Reason, dict[str, Any]] = {
    Reason.PRECISION_MISMATCH: {"files": FILES[0]},
    Reason.MODEL_LOAD_FAILED: {"files": FILES[1]},
    Reason.SIGNATURE_MISMATCH: {"declared": lambda: replace(SIGNATURE, inputs=())},
    Reason.INFERENCE_FAILED: {"infer": refuses},
    Reason.OUTPUTS_NOT_FINITE: {"infer": lambda inputs, outputs: {"Y": inputs["X"] / numpy.float32(0)}},
    Reason.OUTPUTS_DIFFER: {"infer": lambda inputs, outputs: {"Y": inputs["X"] + 1}},
    Reason.GAINS_NOTHING: {"engine_caches": (Path("/nowhere"),)},
}
"""What a candidate fails by, in the order of the gates."""


def failing(reason: Reason, tmp_path: Path) -> dict[str, Any]:
    changes = dict(FAILING[reason])
    if "files" in changes:
        changes["files"] = [(tmp_path / changes["files"], ServedModel("m", "onnx", "fp32"))]
    return changes


def test_every_verdict_of_a_gate_is_among_these() -> None:
    assert FAILING.keys() == candidate.VERDICTS
    assert candidate.judge(a_candidate()) is None


@pytest.mark.parametrize("reason", FAILING)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_first_gate_that_fails_decides(reason: Reason, tmp_path: Path) -> None:
    of_halves(tmp_path / FILES[0])
    (tmp_path / FILES[1]).write_bytes(b"no graph")
    later = list(FAILING)[list(FAILING).index(reason) + 1 :]
    for also in (None, *later):
        changes = failing(also, tmp_path) if also else {}
        failed = candidate.judge(a_candidate(**changes | failing(reason, tmp_path)))
        assert failed is not None
        assert failed.reason is reason


@pytest.mark.parametrize(
    ("published", "tolerance", "passes"),
    [
        (("FP16",), (1e-4, 1e-4), True),
        (("BF16", "FP32"), (1e-4, 1e-4), True),
        (("FP32", "FP16"), (1e-4, 1e-4), False),
        (("FP16",), (1e-3, 0.0), False),
        (("FP16",), (5e-3, 0.0), True),
    ],
)
def test_a_file_in_half_precision_that_is_served_as_it_is_rounds_as_fp16_does(
    published: tuple[str, ...], tolerance: tuple[float, float], passes: bool
) -> None:
    """The framework computes in it too, and another kernel rounds the last of its eleven bits otherwise."""
    served = a_candidate(
        infer=lambda inputs, outputs: {"Y": inputs["X"] * numpy.float32(1.002)},
        published_types=published,
        tolerance=Tolerance(*tolerance),
    )
    failed = candidate.judge(served)
    assert (failed is None) is passes, failed
    if failed is not None:
        assert "precision: fp32, " in failed.message


def test_what_says_nothing_of_the_candidate_ends_the_job() -> None:
    def gone(inputs: object, outputs: object) -> Any:
        raise StageError(Reason.SERVER_CRASHED, "the server ended", final=False)

    with pytest.raises(StageError, match="the server ended"):
        candidate.judge(a_candidate(infer=gone))


def test_a_reference_that_lacks_samples_ends_the_job(tmp_path: Path) -> None:
    x = numpy.ones((1, 10), numpy.float32)
    write_batch(tmp_path, 0, Batch(numpy.arange(1), {"X": x}, {}, {"Y": x}))
    with pytest.raises(StageError, match="holds 1 samples, but its result says 2") as error:
        candidate.judge(a_candidate(batches=produce._complete(tmp_path, False, 2)))
    assert error.value.reason is Reason.RESULT_MISSING
