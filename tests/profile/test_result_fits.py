"""A profile's result in its termination message, at the limits that the API allows."""

from dataclasses import replace

import pytest

from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import Environment, Lengths, MeasureResult, Mix, ProfileResult, Row
from triton_converters.contract.step_times import StepTimes
from triton_converters.measuring.settings import SETTINGS

COMMAND = (
    "perf_analyzer -m some-model-name -u 127.0.0.1:8001 -i grpc -b 1 --concurrency-range 16"
    " --input-data /repository/.triton-operator/references/0123456789abcdef/perf.json --shared-memory system"
    " --output-shared-memory-size 123456 --warmup-request-count 32 --measurement-mode count_windows"
    " --measurement-request-count 500 --stability-percentage 10 --max-trials 5 -v --verbose-csv"
    " -f offline-batch128-concurrency1.csv"
)


def row(concurrency: int) -> Row:
    """Latencies of a model that takes a tenth of a second."""
    return Row(128, concurrency, 12345.6, 12, 1234, 123456, 1234, 123456, 1234, 12, *([123456] * 5), True)


def test_the_largest_sweeps_fit() -> None:
    environment = Environment(
        "2.51.0", "gpu", "NVIDIA-A100-SXM4-80GB", "10.0.1", "AMD EPYC 7742, 8 cores", (COMMAND,) * 3
    )
    rows = tuple(row(100 + number) for number in range(24))
    message = "256 samples agree in 24 requests of 1, 65, 128 samples; largest absolute error 1.19e-07"
    rates = tuple(replace(row(0), request_rate=12345 + number) for number in range(5))
    result = ProfileResult(
        *(True, "Passed", message, 1.1920928955078125e-07, 256, rows[:8], rows[8:], environment),
        stat_digest="a" * 64,
        request_rate=rates,
        mix=Mix(100, 100, tuple(Lengths("an_input_of_a_graph", each, each, 128, 4096, 65536) for each in range(4))),
    )
    Outcome("profile", "0123456789abcdef", result).to_json()


@pytest.mark.parametrize("models", [8, 3, 2])
def test_the_times_of_an_ensembles_models_fit_next_to_the_largest_sweep_that_has_them(models: int) -> None:
    rows = tuple(row(100 + number) for number in range(min(24, SETTINGS.most_figures // models)))
    times = (12345678,) * len(rows)
    steps = tuple(StepTimes(f"{number}{'m' * 62}", times, times) for number in range(models))
    environment = Environment("2.51.0", "gpu", "NVIDIA-A100-SXM4-80GB", "10.0.1", "AMD EPYC 7742, 8 cores", (COMMAND,))
    mix = Mix(100, 100, tuple(Lengths("an_input_of_a_graph", each, each, 128, 4096, 65536) for each in range(4)))
    result = MeasureResult(rows, environment, mix, steps)
    outcome = Outcome("measure", "0123456789abcdef", result)
    assert Outcome.from_json(outcome.to_json()).result.steps == steps
