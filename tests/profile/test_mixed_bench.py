"""A server that is sent samples of several lengths: what perf_analyzer is told, for each batch size."""

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from test_one_request import TOOL
from test_perf_analyzer import COUNT

from triton_converters.claim_store.dump import Array, Arrays, Batch, write_batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Load, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.measuring import bench as measuring_bench
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.load_input import describe

SIGNATURE = Signature((Tensor("X", "FP32", (-1,)),), (Tensor("Y", "FP32", (-1,)),), 8)
BATCHED = TOOL.replace("1,1000,", "1,800,")


@dataclass
class Doubling:
    """A server whose requests take as long as they are."""

    seconds_of_element: float = 0.0
    lengths: list[int] = field(default_factory=list)
    model: str = "doubling"
    load: str = "localhost:8001"

    def infer(self, inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        self.lengths.append(inputs["X"].shape[1])
        time.sleep(self.seconds_of_element * inputs["X"].shape[1])
        return {"Y": inputs["X"] * 2}

    def configs(self) -> list[dict[str, Any]]:
        return [{"instance_group": [{"kind": "KIND_CPU"}]}]

    def used_memory(self, device: str) -> int:
        return 0


@dataclass
class Run:
    """What perf_analyzer was told, and where."""

    rows: int
    calls: list[list[str]]
    directory: Path
    reference: Path


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Returns a function that sweeps a server with samples of 7, 3, 7 and 5 elements."""
    reference, directory = tmp_path / "reference", tmp_path / "measured"
    directory.mkdir()
    for number, length in enumerate((7, 3, 7, 5)):
        x = numpy.full((2, length), length, numpy.float32)
        write_batch(reference, number, Batch(numpy.arange(2), {"X": x}, {}, {"Y": x * 2}))
    (directory / "perf_analyzer").write_text(BATCHED)
    (directory / "perf_analyzer").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")

    def sweep(
        server: Doubling,
        asked: Sweep,
        inputs: Path | None = None,
        scenario: str = "online",
        rates: OpenLoop | None = None,
        output_bytes: int = 28,
    ) -> Run:
        anything: Any = server
        made = Bench(anything, Load("", "grpc", "", (), COUNT), SIGNATURE, reference, directory, inputs=inputs)
        if rates:
            (directory / "perf_analyzer").write_text(BATCHED.replace("Concurrency", "Request Rate"))
        found = made.at_rates(rates, asked, (), output_bytes) if rates else made.sweep(scenario, asked, output_bytes)
        calls = [line.split() for line in (directory / "calls").read_text().splitlines()]
        return Run(len(found.rows), calls, directory, reference)

    return sweep


def value(call: list[str], flag: str) -> str:
    return call[call.index(flag) + 1]


def test_single_samples_have_their_own_shapes_and_larger_requests_one_after_the_other(bench: Any) -> None:
    run = bench(Doubling(), Sweep((1, 8), (1,), True))
    assert run.rows == 2
    assert [(value(each, "-b"), value(each, "--input-data"), "--shape" in each) for each in run.calls] == [
        ("1", "mixed.json", False),
        ("8", "shape-1.json", True),
        ("8", "shape-2.json", True),
        ("8", "shape-3.json", True),
    ]
    assert [value(each, "--shape") for each in run.calls[1:]] == ["X:3", "X:5", "X:7"]
    steps = json.loads((run.directory / "mixed.json").read_text())["data"]
    assert sorted(step["X"]["shape"][0] for step in steps) == [3, 3, 5, 5, 7, 7, 7, 7]
    # Twice the largest output of one request, for outputs whose size depends on values.
    assert {value(each, "--output-shared-memory-size") for each in run.calls} == {"56"}


def test_each_shape_is_timed_alone_and_the_mean_decides_how_long_windows_are(
    bench: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Doubling(seconds_of_element=0.1)
    run = bench(server, Sweep((1,), (1,), False))
    assert set(server.lengths) == {3, 5, 7}
    # The mean of eight samples is 5.5 elements: 0.55 s, of which a minute holds three windows of 36 at most.
    assert "a request takes about 0." in capsys.readouterr().out
    window = int(value(run.calls[0], "--measurement-request-count"))
    assert 8 <= window <= 32
    assert window % 8 == 0


@pytest.mark.parametrize("scenario", ["offline", "online", "request_rate"])
def test_shared_memory_that_is_too_small_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, bench: Any, scenario: str
) -> None:
    asked = Sweep((1, 8), (1,), True)
    run = bench(Doubling(), asked)
    # Regions hold 8 samples: one for each sample of the file, and one for outputs of 56 bytes each.
    needed = 8 * (max((run.directory / f"shape-{number}.json").stat().st_size for number in (1, 2, 3)) + 56)
    monkeypatch.setattr(measuring_bench, "free_shared_bytes", lambda: needed)
    assert bench(Doubling(), asked, scenario=scenario).rows == 2
    monkeypatch.setattr(measuring_bench, "free_shared_bytes", lambda: needed - 1)
    with pytest.raises(StageError) as caught:
        bench(Doubling(), asked, scenario=scenario)
    assert caught.value.reason is Reason.INVALID_SPEC
    listed = "Offline" if scenario == "offline" else "Online"
    assert "raise spec.serving.sharedMemorySize" in caught.value.message
    assert f"take {listed} out of spec.performance.sharedMemory" in caught.value.message
    assert bench(Doubling(), replace(asked, shared_memory=False), scenario=scenario).rows == 2


def test_request_rates_in_shared_memory_have_room_for_outputs_that_vary(bench: Any) -> None:
    (call,) = bench(Doubling(), Sweep((1,), (1,), True), rates=OpenLoop((1,)), output_bytes=1000).calls
    assert (value(call, "--request-rate-range"), value(call, "--output-shared-memory-size")) == ("1", "1000")


def test_points_of_a_search_share_one_input(bench: Any, tmp_path: Path) -> None:
    run = bench(Doubling(), Sweep((1,), (1,), False), tmp_path / "inputs")
    assert value(run.calls[0], "--input-data") == "../inputs/mixed.json"
    assert (tmp_path / "inputs" / "mixed.json").is_file()
    assert not (run.directory / "mixed.json").exists()


def test_what_is_told_of_the_shapes_is_what_is_sent(bench: Any) -> None:
    asked = Sweep((1,), (1,), False)
    run = bench(Doubling(), asked)
    mix = describe(run.reference, (), SIGNATURE, asked)
    assert mix is not None
    assert (mix.samples, mix.shapes) == (8, 3)
    (lengths,) = mix.lengths
    assert (lengths.minimum, lengths.median, lengths.p90, lengths.maximum) == (3, 5, 7, 7)
