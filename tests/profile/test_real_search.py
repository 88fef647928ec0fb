"""The search stage in the converter image, on a real tritonserver that is given one configuration after the other."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from linear_model import MAX_BATCH_SIZE
from served_claim import REVISION, profile_request

from images.pod import Pod
from triton_converters import claim
from triton_converters.request import Measurement, SearchRequest, Sweep, Tolerance
from triton_converters.result import ProfileResult, SearchResult, Tuning
from triton_converters.search.journal import BEGAN, FILE, MEASURED, REFUSED, REPEATED, Entry, Journal

pytestmark = pytest.mark.images

SHORT = Measurement("TimeWindows", 20, 200, 90)
"""Figures are not what is tested, and the machine is shared."""
BASE = Tuning(MAX_BATCH_SIZE, 1, True, (), 0, False)
"""As served_claim's models are configured."""


def search_request(pod: Pod, key: str, **changes: object) -> SearchRequest:
    request = SearchRequest(
        key=key,
        search="searched",
        part=0,
        revision=REVISION,
        reference="linear",
        profile="profiled",
        model_name="linear",
        max_batch_size=MAX_BATCH_SIZE,
        precision="fp32",
        tolerance=Tolerance(1e-4, 1e-4),
        scenario="online",
        load=pod.load(SHORT),
        sweep=Sweep((1,), (1, 4), False),
        mode="Quick",
        base=BASE,
        maximum_instances=2,
        vary_cuda_graphs=False,
        objectives=(),
        constraints=(),
        measurements=8,
        seconds=600,
    )
    return replace(request, **changes)  # type: ignore[arg-type]


def profiled(pod: Pod) -> ProfileResult:
    request = profile_request("profiled", "linear", pod.ports)
    swept = replace(request, load=pod.load(SHORT), offline=Sweep((), (), False), online=Sweep((1,), (1, 4), False))
    code, outcome, output = pod.run_stage("profile", swept)
    assert code == 0, output
    assert isinstance(outcome.result, ProfileResult)
    return outcome.result


def searched(pod: Pod, request: SearchRequest) -> SearchResult:
    code, outcome, output = pod.run_stage("search", request)
    assert code == 0, output
    assert isinstance(outcome.result, SearchResult), output
    return outcome.result


def entries(pod: Pod) -> list[Entry]:
    return Journal(claim.search_directory("searched", pod.root)).entries


def test_configurations_are_loaded_measured_and_told(search_pod: Pod) -> None:
    base = profiled(search_pod)
    assert all(row.memory_bytes > 2**20 for row in base.online), "the server's own metrics"
    found = searched(search_pod, search_request(search_pod, "quick"))
    assert found.ended in ("Converged", "MeasurementsSpent")
    assert 1 <= len(found.points) <= 6
    assert all(point.row and point.row.throughput > 10 for point in found.points)
    assert BASE not in {point.tuning for point in found.points}, "the profile has measured the base"
    assert "--concurrency-range" in found.environment.perf_analyzer[0]
    assert found.environment.server_version == "2.51.0"
    kinds = [entry.kind for entry in entries(search_pod)]
    assert kinds.count(MEASURED) == len(found.points)
    assert kinds.count(REPEATED) == len(found.repeats)
    directory = claim.search_directory("searched", search_pod.root)
    assert {path.suffix for path in directory.glob("0*/*")} == {".csv", ".log"}


def test_what_is_measured_is_what_was_asked_for(search_pod: Pod) -> None:
    profiled(search_pod)
    wanted = Sweep((1,), (4,), False)
    found = searched(search_pod, search_request(search_pod, "two", mode="Exhaustive", sweep=wanted, measurements=4))
    (first, second) = found.points
    assert found.ended == "MeasurementsSpent"
    assert first.tuning != second.tuning
    # The last configuration that was loaded is what the server says of itself; repeats end with the second best.
    last = entries(search_pod)[-1].tuning
    status = subprocess.run(
        ["curl", "-sf", f"http://127.0.0.1:{search_pod.ports[0]}/v2/models/linear/config"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    config = json.loads(status.stdout)
    assert config["instance_group"][0]["count"] == last.instances
    assert config["max_batch_size"] == last.max_batch_size
    assert ("dynamic_batching" in config) == last.dynamic_batching


def test_a_search_that_is_killed_goes_on_where_it_was(search_pod: Pod) -> None:
    profiled(search_pod)
    request = search_request(search_pod, "killed")
    file = claim.search_directory("searched", search_pod.root) / FILE
    stage = search_pod.start_stage("search", request)
    deadline = time.monotonic() + 120
    while not file.exists() or file.read_text().count('"kind":"measured"') < 2:
        assert time.monotonic() < deadline
        assert stage.poll() is None
        time.sleep(0.1)
    for process in below(stage.pid):
        os.kill(process, signal.SIGKILL)
    stage.wait(60)
    before = [entry.point for entry in entries(search_pod) if entry.kind == MEASURED]
    assert not search_pod.measurement("killed").exists()
    found = searched(search_pod, request)
    after = [entry.point for entry in entries(search_pod) if entry.kind == MEASURED]
    assert len(before) >= 2
    assert after[: len(before)] == before
    assert len(set(after)) == len(after), "no point is measured twice"
    assert [point.tuning for point in found.points] == [point.tuning for point in after]


def test_what_does_not_load_or_answers_otherwise_is_refused_and_not_tried_again(search_pod: Pod) -> None:
    profiled(search_pod)
    model = claim.model_repository(REVISION, search_pod.root) / "linear"
    config = (model / "config.pbtxt").read_text()
    (model / "config.pbtxt").write_text(config.replace('name: "LOGITS"', 'name: "NOBODY"'))
    found = searched(search_pod, search_request(search_pod, "refused", measurements=5))
    assert found.ended in ("Converged", "MeasurementsSpent")
    assert all(point.row is None for point in found.points)
    assert all(point.refused.startswith("tritonserver says: ") for point in found.points)
    assert [entry.kind for entry in entries(search_pod)] == [BEGAN, REFUSED] * len(found.points)


def below(pid: int) -> list[int]:
    """A process and all that it started, the last first."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in children for each in below(int(child))] + [pid]
