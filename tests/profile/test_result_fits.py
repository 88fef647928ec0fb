"""A profile's result in its termination message, at the limits that the API allows."""

from dataclasses import replace
from random import Random

import pytest

from triton_converters.contract.envelope import MessageTooLongError, Outcome
from triton_converters.contract.results import Accuracy, Environment, ProfileResult, Row
from triton_converters.stages.profile import fit

COMMAND = (
    "perf_analyzer -m some-model-name -u 127.0.0.1:8001 -i grpc -b 1 --concurrency-range 16"
    " --input-data /repository/references/0123456789abcdef/perf.json --shared-memory system"
    " --output-shared-memory-size 123456 --warmup-request-count 32 --measurement-mode count_windows"
    " --measurement-request-count 500 --stability-percentage 10 --max-trials 5 -v --verbose-csv"
    " -f offline-batch128-concurrency1.csv"
)


def row(concurrency: int) -> Row:
    """Latencies of a model that takes a tenth of a second."""
    return Row(128, concurrency, 12345.6, 12, 1234, 123456, 1234, 123456, 1234, 12, *([123456] * 5), True)


def result(offline: int, online: int, accuracy: tuple[Accuracy, ...]) -> ProfileResult:
    environment = Environment(
        "2.51.0", "gpu", "NVIDIA-A100-SXM4-80GB", "10.0.1", "AMD EPYC 7742, 8 cores", (COMMAND,) * 2
    )
    rows = tuple(row(100 + number) for number in range(24))
    message = "256 samples agree in 24 requests of 1, 65, 128 samples; largest absolute error 1.19e-07"
    return ProfileResult(
        True, "Passed", message, 1.1920928955078125e-07, accuracy, 256, rows[:offline], rows[:online], environment
    )


def metric(name: str, threshold: str = "") -> Accuracy:
    """Figures of its own: what repeats costs nothing in a deflated message."""
    random = Random(name)  # noqa: S311 - not for secrets
    return Accuracy(name, random.random(), random.random(), threshold, True)


def test_the_largest_sweeps_with_two_thresholds_fit() -> None:
    largest = result(8, 16, (metric("accuracy", "minimum 0.95"), metric("loss", "maximumDegradation 0.01")))
    assert fit("0123456789abcdef", largest) == largest
    Outcome("profile", "0123456789abcdef", largest).to_json()


def test_metrics_without_threshold_give_way_and_those_with_one_stay() -> None:
    judged = metric("accuracy", "minimum 0.95")
    full = result(8, 16, (judged, *(metric(f"class_{number}_iou") for number in range(300))))
    kept = fit("0123456789abcdef", full)
    assert 1 <= len(kept.accuracy) < 301
    assert kept.accuracy[0] == judged
    assert replace(kept, accuracy=()) == replace(full, accuracy=())
    Outcome("profile", "0123456789abcdef", kept).to_json()


def test_what_must_not_be_left_out_is_refused_and_not_cut() -> None:
    judged = tuple(metric(f"metric_{number}", "minimum 0.95") for number in range(200))
    kept = fit("0123456789abcdef", result(8, 16, judged))
    assert kept.accuracy == judged
    with pytest.raises(MessageTooLongError):
        Outcome("profile", "0123456789abcdef", kept).to_json()
