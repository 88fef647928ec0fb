"""What one request takes alone, which decides how many a window holds, on a server whose first calls are slow."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from linear_model import SIGNATURE, Linear, batches
from test_perf_analyzer import COUNT, HEADER

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.measurement_requests import Load, Sweep
from triton_converters.measuring import bench
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.perf_input import PerfInput

BATCH = 8
SLOW_SECONDS = 0.4
"""A window would then hold 6 of the 50 requests that the spec asks for. It holds all below 50 ms."""
TOOL = f"""#!/bin/sh
echo "$@" >> calls
while [ $# -gt 1 ]; do [ "$1" != -f ] || report=$2; shift; done
printf '%s\\n' "{HEADER}" 1,1000,2,261,280,24,250,142,1,918,1225,1324,1690,961,3,952 > "$report"
"""
"""Stands for perf_analyzer: keeps its command line, and always finds three windows that agree."""


@dataclass
class SlowAtFirst:
    """A server that takes so many seconds for its first requests, and none for the others."""

    seconds: list[float]
    asked: int = 0
    model: str = "linear"
    load: str = "localhost:8001"
    linear: Linear = field(default_factory=Linear)

    def infer(self, inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        self.asked += 1
        time.sleep(self.seconds.pop(0) if self.seconds else 0)
        return self.linear(inputs, outputs)

    def configs(self) -> list[dict[str, Any]]:
        return [{"instance_group": [{"kind": "KIND_CPU"}]}]

    def used_memory(self, device: str) -> int:
        return 0


def windows(monkeypatch: pytest.MonkeyPatch, folder: Path, server: SlowAtFirst) -> int:
    """How many requests a window of an offline sweep holds."""
    collected = PerfInput(batched=True)
    collected.add(next(batches()).inputs)
    (folder / "perf.json").write_text(collected.to_json())
    (folder / "perf_analyzer").write_text(TOOL)
    (folder / "perf_analyzer").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    load = Load("", "grpc", "", (), COUNT)
    asked: Any = server  # It has what is asked of a server, and no connection.
    Bench(asked, load, SIGNATURE, folder, folder).sweep("offline", Sweep((BATCH,), (1,), False))
    argv = (folder / "calls").read_text().split()
    return int(argv[argv.index("--measurement-request-count") + 1])


@pytest.mark.parametrize("seconds", [[], [SLOW_SECONDS], [0.1, SLOW_SECONDS]], ids=["none", "first", "and second"])
def test_windows_hold_what_the_spec_asks_for_although_the_first_requests_were_slow(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    seconds: list[float],
) -> None:
    """ONNX Runtime plans its convolutions in the first request of a shape; PyTorch optimizes in the second."""
    assert windows(monkeypatch, tmp_path, SlowAtFirst(seconds)) == COUNT.request_count
    assert "a request takes about" not in capsys.readouterr().out


def test_a_model_that_is_always_slow_has_shorter_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = SlowAtFirst([SLOW_SECONDS] * 3)
    assert windows(monkeypatch, tmp_path, server) <= 6
    assert server.asked == 3


def test_a_slow_request_is_not_sent_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "SETTINGS", replace(bench.SETTINGS, alone_seconds=SLOW_SECONDS))
    server = SlowAtFirst([SLOW_SECONDS] * 3)
    windows(monkeypatch, tmp_path, server)
    assert server.asked == 1
