"""What bench.int8 makes of measurements and of a metric: its pure parts."""

from io import StringIO
from pathlib import Path

import numpy
import pytest
from rich.console import Console

from bench.int8.__main__ import Line, figures, table, verdict
from bench.int8.subjects import CHOICE, LETTERS, SUBJECTS, runs
from bench.int8.user.dataloader import get_dataloader_fn
from bench.int8.user.metrics import MetricsCalculator, accuracy, boundaries, psnr
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row

QUANTIZED = Quantized("Static", 8, 7, 36.42, 2.5, 32)


def row(throughput: float, p99: int) -> Row:
    return Row(1, 8, throughput, 0, 0, 0, 0, 0, 0, 0, p99 // 2, p99, p99, p99, p99 // 2, True)


def line(reason: Reason = Reason.PASSED, message: str = "") -> Line:
    return Line(
        model="digits",
        told="handwritten digits",
        metric="accuracy",
        framework=0.9944,
        threshold="maxDegradation 0.01",
        rows={
            "fp32": (row(100, 9000), row(200, 7000), row(100, 8000)),
            "int8": (row(150, 5000), row(240, 4000), row(190, 4400)),
        },
        metrics={"fp32": 0.9944, "int8": 0.9917},
        output="scores",
        quantized=QUANTIZED,
        reason=str(reason),
        message=message,
    )


def shown(*lines: Line) -> str:
    file = StringIO()
    Console(file=file, width=250).print(table(lines))
    return file.getvalue()


def test_ratios_are_of_one_round_each() -> None:
    """Other work on the machine in one round then changes both sides."""
    assert line().ratios == [1.5, 1.2, 1.9]


def test_figures_are_medians() -> None:
    assert figures(line().rows["fp32"]) == "100/s, p99 8.0 ms"


def test_a_line_has_the_ratio_with_its_range_the_metrics_and_what_the_graph_is_like() -> None:
    text = shown(line())
    for words in ("1.50", "1.20 to 1.90", "0.9944", "0.9917", "scores: 36.4", "7 of 8", "Static", "Passed"):
        assert words in text


def test_a_refused_candidate_is_told_with_its_reason() -> None:
    assert verdict(line()) == "passes"
    refused = line(Reason.THRESHOLD_NOT_MET, "accuracy of the served outputs is 0.9")
    assert verdict(refused) == "refused: ThresholdNotMet: accuracy of the served outputs is 0.9"
    assert "ThresholdNotMet" in shown(refused)


def test_each_subject_has_a_name_of_its_own_and_a_metric_that_its_calculator_knows() -> None:
    assert len(CHOICE) == len(SUBJECTS) >= 4
    for each in SUBJECTS:
        label = numpy.zeros((2, 3), int) if each.metric == "boundaries" else numpy.ones(2, int)
        answers = numpy.ones((2, 3, 2)) if each.metric == "boundaries" else numpy.zeros((2, 2))
        calculator = MetricsCalculator(each.metric, each.output)
        if each.metric == "psnr":
            label = answers + 0.1
        found = calculator.calc(ids=[0, 1], y_pred={each.output: answers}, x={}, y_real={"label": label})
        assert list(found) == [each.threshold.metric]


def test_accuracy_is_the_share_of_best_scores_that_are_right() -> None:
    assert accuracy(numpy.array([[1.0, 0], [0, 1], [3, 1]]), numpy.array([0, 1, 1])) == pytest.approx(2 / 3)


def test_boundaries_that_are_not_judged_do_not_count() -> None:
    scores = numpy.eye(2)[[[0, 1, 0, 0]]]
    assert boundaries(scores, numpy.array([[0, 1, 0, -1]])) == 1
    # Two are found, one of them right, and one is wanted.
    assert boundaries(scores, numpy.array([[0, 1, 1, -1]])) == pytest.approx(2 / 3)


def test_the_peak_signal_is_one() -> None:
    assert psnr(numpy.full((1, 4), 0.6), numpy.full((1, 4), 0.5)) == pytest.approx(20)


def test_texts_are_the_longest_runs_of_letters_each_once_without_marks_of_words() -> None:
    word, short = "\u1780" * 30, "\u1781\u1782"
    assert runs([f"{word}\u200b{word} (id)", f"{short} %s {short}"]) == [word + word[: LETTERS - 30], short]


def test_the_dataloader_yields_what_the_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"inputs/x": numpy.arange(10).reshape(5, 2), "labels/label": numpy.arange(5)}
    numpy.savez(tmp_path / "data.npz", allow_pickle=False, **arrays)
    monkeypatch.setattr("bench.int8.user.dataloader.__file__", str(tmp_path / "dataloader.py"))
    batches = list(get_dataloader_fn(2)())
    assert [len(ids) for ids, _, _ in batches] == [2, 2, 1]
    assert [list(inputs) + list(labels) for _, inputs, labels in batches] == [["x", "label"]] * 3
    assert numpy.concatenate([inputs["x"] for _, inputs, _ in batches]).tolist() == arrays["inputs/x"].tolist()
