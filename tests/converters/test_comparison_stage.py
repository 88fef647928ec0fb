"""The comparison of candidates with earlier revisions, from the request to the result."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from tests.converters.run_stage import run_comparison
from tests.converters.test_metrics_stage import ENVIRONMENT, publish_file
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.claim_store.served_outputs import FOLDER, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.envelope import MESSAGE_LIMIT_BYTES, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import ComparisonRequest, KeptOutputs, Mark
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    ProfileResult,
    ReferenceResult,
    Signature,
    Tensor,
)
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllCompared, ComputedMark
from triton_converters.stages.comparison import produce, publish

SOURCE, NEW, OLD, KEY = "d" * 64, "e" * 16, "a" * 16, "f" * 16
SAMPLES, CLASSES = 120, 3
CODE = """
import numpy as np

class MetricsCalculator:
    def calc(self, *, ids, y_pred, x, y_real):
        hits = y_pred["SCORES"].argmax(axis=1) == y_real["LABEL"]
        x["X"][:] = 0
        return {"accuracy": hits.mean(), "error": 1 - hits.mean()}
"""
LABELS = numpy.arange(SAMPLES) % CLASSES
INPUTS = numpy.eye(CLASSES, dtype=numpy.float32)[LABELS]


def scores(*wrong: int) -> numpy.ndarray:
    """The right answers, but to samples of these numbers."""
    found = INPUTS.copy()
    found[list(wrong)] = numpy.roll(found[list(wrong)], 1, axis=1)
    return found


def reference(
    key: str, inputs: numpy.ndarray = INPUTS, names: tuple[str, str] = ("X", "SCORES"), size: int = 40
) -> None:
    """What a reference leaves of a framework that is always right."""
    directory = layout.reference_directory(key)
    labels = inputs.argmax(axis=1)
    for number in range(SAMPLES // size):
        rows = slice(number * size, (number + 1) * size)
        batch = Batch(
            numpy.arange(SAMPLES)[rows], {names[0]: inputs[rows]}, {"LABEL": labels[rows]}, {names[1]: inputs[rows]}
        )
        write_batch(directory, number, batch)
    signature = Signature((Tensor(names[0], "FP32", (3,)),), (Tensor(names[1], "FP32", (3,)),), size)
    write_result(directory, "reference", key, ReferenceResult(signature, SAMPLES, SAMPLES // size, 1.0))


def keep(profile: str, answers: numpy.ndarray) -> None:
    """What a profile leaves."""
    directory = layout.measurement_directory(profile)
    directory.mkdir(parents=True)
    write_outputs(directory / FOLDER, [{"SCORES": row} for row in answers])
    write_result(directory, "profile", profile, ProfileResult(True, "Passed", "", 0.0, SAMPLES, (), (), ENVIRONMENT))


@pytest.fixture
def claim(mount: Path) -> Path:
    """A claim with a source, two references of the same samples, a mark that errs twice, and what serves now."""
    source = layout.source_directory(SOURCE)
    source.mkdir(parents=True)
    (source / "metrics.py").write_text(CODE)
    reference(NEW)
    reference(OLD)
    keep("mark", scores(0, 1))
    keep("equal", scores(0, 1))
    keep("worse", scores(*range(60)))
    return mount


MARK = Mark("c" * 16, "digits", OLD, KeptOutputs("mark", "trt", "fp32"))


def request(
    *candidates: str, marks: tuple[Mark, ...] = (MARK,), names: tuple[str, ...] = ("accuracy",)
) -> ComparisonRequest:
    kept = tuple(KeptOutputs(each, "onnx", "fp32") for each in candidates)
    return ComparisonRequest(KEY, SOURCE, NEW, "pyt", 40, Entrypoint("metrics.py", {}), kept, names, marks=marks)


def test_what_a_mark_reaches_and_how_sure_each_difference_is(claim: Path) -> None:
    result = run_comparison(request("equal", "worse", names=("accuracy", "error")))
    assert (result.samples, result.profiles, result.message) == (SAMPLES, ("equal", "worse"), "")
    (mark,) = result.marks
    assert (mark.revision, mark.message) == ("c" * 16, "")
    assert mark.values == pytest.approx((118 / 120, 2 / 120)), "the user's code changes arrays of its own"
    (noise,) = {round(each, 12) for each in mark.noise if each is not None}
    assert noise == pytest.approx(1.5 / 120, rel=0.3), "an answer that is exchanged costs one sample"
    (equal, worse) = mark.errors
    assert equal == (0.0, 0.0), "the same answers to the same samples"
    # 58 samples of 120 differ: the standard error of a share.
    assert worse == pytest.approx([(58 / 120 * 62 / 120 / 120) ** 0.5] * 2, rel=0.12)


def test_the_same_job_finds_the_same(claim: Path) -> None:
    first = run_comparison(request("worse"))
    assert run_comparison(replace(request("worse"), key="0" * 16)).marks == first.marks


def test_a_mark_answers_other_samples_by_its_file(claim: Path) -> None:
    publish_file("c" * 16, 1.0)
    others = "9" * 16
    reference(others, inputs=numpy.roll(INPUTS, 1, axis=0))
    asked = replace(request("worse"), reference=others)
    (mark,) = run_comparison(replace(asked, marks=(replace(MARK, outputs=KeptOutputs("mark", "onnx", "fp32")),))).marks
    assert (mark.values, mark.message) == ((1.0,), ""), "its kept outputs err twice, and its file never"


def gone(claim: Path) -> ComparisonRequest:
    for path in layout.reference_directory(OLD).rglob("*.*"):
        path.unlink()
    return request("worse")


def other_samples(claim: Path) -> ComparisonRequest:
    others = "9" * 16
    reference(others, inputs=numpy.roll(INPUTS, 1, axis=0))
    return replace(request("worse"), reference=others)


def without_file(claim: Path) -> ComparisonRequest:
    return replace(other_samples(claim), marks=(replace(MARK, outputs=KeptOutputs("mark", "onnx", "fp32")),))


def other_tensors(claim: Path) -> ComparisonRequest:
    reference("9" * 16, names=("X", "LOGITS"))
    return request("worse", marks=(replace(MARK, reference="9" * 16),))


def no_outputs(claim: Path) -> ComparisonRequest:
    for path in layout.kept_outputs("mark").glob("*"):
        path.unlink()
    return request("worse")


def broken_outputs(claim: Path) -> ComparisonRequest:
    next(layout.kept_outputs("mark").glob("*")).write_bytes(b"no zip")
    return request("worse")


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (gone, "holds no valid result.json"),
        (other_samples, "its kept outputs are gone or of other samples, and its format, trt, runs in Triton alone"),
        (without_file, "are gone or of other samples, and no file of it alone is on the repository claim"),
        (other_tensors, "its inputs or outputs have other names or types"),
        (no_outputs, "its format, trt, runs in Triton alone"),
        (broken_outputs, "its kept outputs are broken"),
    ],
)
def test_a_mark_that_cannot_answer_says_why_and_fails_nothing(
    claim: Path, prepare: Callable[[Path], ComparisonRequest], words: str
) -> None:
    (mark,) = run_comparison(prepare(claim)).marks
    assert words in mark.message
    assert (mark.values, mark.errors) == ((), ())


def test_tensors_in_another_order_are_the_same() -> None:
    """Inputs and outputs go by their names."""
    one, other = Tensor("X", "FP32", (3,)), Tensor("MASK", "INT64", (3,))
    assert produce._tensors(Signature((one, other), (one,), 8)) == produce._tensors(Signature((other, one), (one,), 8))


def test_a_mark_that_cannot_answer_leaves_the_other_comparable(claim: Path) -> None:
    lost = replace(MARK, revision="b" * 16, reference="8" * 16)
    first, second = run_comparison(request("worse", marks=(lost, MARK))).marks
    assert first.message
    assert not first.values
    assert second.values == pytest.approx((118 / 120,))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            'if len(set(ids)) < 120: raise ValueError("each once")',
            "are drawn again fail: metrics.py:6: ValueError: each once",
        ),
        ('if len(set(ids)) < 120: return {"accuracy": float("nan")}', "are drawn again are not finite"),
    ],
)
def test_metrics_that_cannot_be_drawn_again_are_not_compared(claim: Path, code: str, words: str) -> None:
    lines = CODE.replace("        hits", f"        {code}\n        hits")
    (layout.source_directory(SOURCE) / "metrics.py").write_text(lines)
    result = run_comparison(request("worse"))
    assert words in result.message
    (mark,) = result.marks
    assert (mark.values, mark.errors) == (pytest.approx((118 / 120,)), ((None,),))


def test_what_takes_too_long_is_not_compared(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "COMPARISON_SECONDS", -1)
    result = run_comparison(request("worse"))
    assert result.message == "the metrics of 200 resamples take longer than -1 s"
    assert result.marks[0].errors == ((None,),)


def test_numbers_that_are_exchanged_stay_finite_and_near() -> None:
    """A probability that was sure and is wrong is no 0, whose logarithm would count for more than any model's loss."""
    given = numpy.eye(CLASSES)[LABELS]
    mark = produce._Answers(KeptOutputs("mark", "onnx", "fp32"), {"P": given, "CLASS": LABELS})
    spoilt = produce._spoilt(mark, SAMPLES).y_pred
    changed = (spoilt["P"] != given).any(axis=1)
    assert 0 < changed.sum() <= SAMPLES * produce.EXCHANGED
    assert spoilt["P"][changed][given[changed] == 1] == pytest.approx(0.1)
    assert spoilt["P"].sum(axis=1) == pytest.approx(1)
    assert set(spoilt["CLASS"]) <= set(LABELS)


@pytest.mark.parametrize("missing", ["sources", "references", "measurements"])
def test_an_input_that_is_missing_is_found_at_once(claim: Path, missing: str) -> None:
    (claim / missing).rename(claim / "gone")
    with pytest.raises(StageError) as caught:
        run_comparison(request("worse"))
    assert (caught.value.reason, caught.value.final) == (Reason.INPUT_MISSING, False)


@pytest.mark.parametrize(
    "left",
    [
        AllCompared(1, ()),
        AllCompared(1, (ComputedMark(), ComputedMark())),
        AllCompared(1, (ComputedMark({"accuracy": 1}, ({"accuracy": 1}, {"accuracy": 1})),)),
    ],
)
def test_tables_of_other_sizes_are_not_published(claim: Path, tmp_path: Path, left: AllCompared) -> None:
    documents.write_end(tmp_path, documents.End())
    documents.write(tmp_path, documents.COMPARISON, left)
    with pytest.raises(StageError) as caught:
        publish.run(request("worse"), tmp_path)
    assert caught.value.reason is Reason.CRASHED


def test_what_is_no_figure_is_as_good_as_not_computed() -> None:
    left = ComputedMark({"a": "1", "b": True, "c": 1.5}, ({"a": -1, "b": 0.123456, "c": None},), {"a": 0.1, "b": -1})
    result = publish.collect(request("worse", names=("a", "b", "c", "d")), AllCompared(-3, (left,)))
    nothing = (None, None)
    mark = MarkMetrics("c" * 16, (None, None, 1.5, None), ((None, 0.123, *nothing),), (0.1, None, *nothing))
    assert result == ComparisonResult(0, ("a", "b", "c", "d"), ("worse",), (mark,))


def test_as_many_metrics_are_published_as_fit() -> None:
    names = tuple(f"{number:02}{'m' * 61}" for number in range(16))
    profiles = tuple(f"{number:016x}" for number in range(18))
    generator = numpy.random.default_rng(1)

    def row(digits: int) -> tuple[float, ...]:
        return tuple(float(f"{each:.{digits}g}") for each in generator.random(len(names)))

    marks = tuple(MarkMetrics(each * 16, row(17), tuple(row(3) for _ in profiles), row(3)) for each in "ab")
    whole = ComparisonResult(256, names, profiles, marks)
    fitted = publish.fit(KEY, whole)
    assert len(Outcome("comparison", KEY, fitted).to_json()) <= MESSAGE_LIMIT_BYTES
    assert fitted.metrics == names[: len(fitted.metrics)]
    assert len(fitted.metrics) > 8
    assert fitted.marks[0].values == marks[0].values[: len(fitted.metrics)]
