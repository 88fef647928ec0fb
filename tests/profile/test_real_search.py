"""The search stage in the converter image, on a real tritonserver that is given one configuration after the other."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import served_claim
from linear_model import MAX_BATCH_SIZE
from served_claim import REVISION, profile_request

from hack.imagebuild.pod import Pod, explicit, outcome_in, serving
from triton_converters.contract import layout
from triton_converters.contract.envelope import EXIT_RETRY
from triton_converters.contract.measurement_requests import Measurement, SearchRequest, Sweep, Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SearchResult, Tuning
from triton_converters.search.journal import BEGAN, FILE, FOLDER, MEASURED, REFUSED, REPEATED, Entry, Journal

pytestmark = pytest.mark.images

SHORT = Measurement("TimeWindows", 20, 200, 90)
"""Figures are not what is tested, and the machine is shared."""
BASE = Tuning(MAX_BATCH_SIZE, 1, True, (), 0, False)
"""As served_claim's models are configured."""


def search_request(pod: Pod, key: str, **changes: object) -> SearchRequest:
    request = SearchRequest(
        key=key,
        search=key,
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
        measurements=5,
        seconds=600,
    )
    return replace(request, **changes)


@pytest.fixture(scope="module")
def searching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    """A server that takes other configurations of the model `linear`, whose own is profiled."""
    root = served_claim.build(tmp_path_factory.mktemp("claim"))
    with serving(root, REVISION, explicit("linear")) as pod:
        request = profile_request("profiled", "linear", pod.ports)
        sweep = Sweep((1,), (1, 4), False)
        code, _, output = pod.run_stage(
            "profile", replace(request, load=pod.load(SHORT), offline=Sweep((), (), False), online=sweep)
        )
        assert code == 0, output
        yield pod


def searched(pod: Pod, request: SearchRequest) -> SearchResult:
    code, outcome, output = pod.run_stage("search", request)
    assert code == 0, output
    assert isinstance(outcome.result, SearchResult), output
    return outcome.result


def entries(pod: Pod, search: str) -> list[Entry]:
    return Journal(layout.search_directory(search, pod.root)).entries


def test_configurations_are_loaded_measured_and_told(searching: Pod) -> None:
    found = searched(searching, search_request(searching, "quick"))
    assert found.ended in ("Converged", "MeasurementsSpent")
    assert 1 <= len(found.points) <= 3
    assert all(point.row and point.row.throughput > 10 for point in found.points)
    assert all(point.row and point.row.memory_bytes > 2**20 for point in found.points), "by the server's own metrics"
    assert BASE not in {point.tuning for point in found.points}, "the profile has measured the base"
    assert "--concurrency-range" in found.environment.perf_analyzer[0]
    assert found.environment.server_version == "2.51.0"
    made = entries(searching, "quick")
    kinds = [entry.kind for entry in made]
    assert kinds.count(MEASURED) == len(found.points)
    assert kinds.count(REPEATED) == len(found.repeats)
    directory = layout.search_directory("quick", searching.root)
    assert {path.suffix for path in directory.glob("0*/*")} == {".csv", ".log"}


def test_what_is_measured_is_what_was_asked_for(searching: Pod) -> None:
    """The server is asked while it is measured: what a search leaves behind depends on what was fastest."""
    wanted = search_request(searching, "seen", mode="Exhaustive", sweep=Sweep((1,), (4,), False))
    earlier = journals(searching)
    stage = searching.start_stage("search", wanted)
    served: dict[Tuning, list[Tuning]] = {}
    while stage.poll() is None:
        try:
            now = configured(searching)
        except OSError:
            # Between two configurations it may serve none.
            continue
        lines = clients_points(searching, earlier).splitlines(keepends=True)
        if lines and lines[-1].endswith("\n") and (last := Entry.from_json(lines[-1])).kind == BEGAN:
            served.setdefault(last.tuning, []).append(now)
    assert stage.returncode == 0, stage.communicate()[0]
    measured = [entry.tuning for entry in entries(searching, "seen") if entry.kind == MEASURED]
    assert len(measured) == 3
    assert len({BASE, *measured}) == 4
    for tuning in measured:
        assert tuning in served[tuning]


def configured(pod: Pod) -> Tuning:
    """What the server says that it serves."""
    with urllib.request.urlopen(f"http://127.0.0.1:{pod.ports[0]}/v2/models/linear/config") as answer:
        config = json.load(answer)
    maximum, batching = config["max_batch_size"], config.get("dynamic_batching", {})
    preferred = tuple(batching.get("preferred_batch_size", ()))
    return Tuning(
        maximum,
        config["instance_group"][0]["count"],
        "dynamic_batching" in config,
        # Without any, Triton says that it prefers the maximum.
        () if preferred == (maximum,) else preferred,
        int(batching.get("max_queue_delay_microseconds", 0)),
        False,
    )


def journals(pod: Pod) -> set[Path]:
    """Every client's own copy of its search."""
    return set((pod.root / "incoming").glob(f"*/{FOLDER}/{FILE}"))


def clients_points(pod: Pod, earlier: set[Path]) -> str:
    """What the client has added to its copy of the search, which none of the earlier ones is."""
    return "".join(path.read_text() for path in journals(pod) - earlier)


def start_and_wait(searching: Pod, key: str) -> tuple["subprocess.Popen[str]", SearchRequest]:
    """A search that has measured two of its three points: no figure ends it before the third."""
    earlier = journals(searching)
    request = search_request(searching, key, mode="Exhaustive")
    stage = searching.start_stage("search", request)
    deadline = time.monotonic() + 120
    while clients_points(searching, earlier).count(f'"{MEASURED}"') < 2:
        assert time.monotonic() < deadline
        assert stage.poll() is None
        time.sleep(0.1)
    return stage, request


def test_a_search_whose_client_is_killed_goes_on_where_it_was(searching: Pod) -> None:
    stage, request = start_and_wait(searching, "killed")
    (client,) = (each for each in below(stage.pid) if b"produce" in Path(f"/proc/{each}/cmdline").read_bytes())
    os.kill(client, signal.SIGKILL)
    output = stage.communicate(timeout=60)[0]
    assert (stage.returncode, outcome_in(output).reason) == (EXIT_RETRY, Reason.CRASHED)
    before = [entry.point for entry in entries(searching, "killed") if entry.kind == MEASURED]
    assert not searching.measurement("killed").exists()
    found = searched(searching, request)
    after = [entry.point for entry in entries(searching, "killed") if entry.kind == MEASURED]
    assert len(before) >= 2
    assert after[: len(before)] == before
    assert len(set(after)) == len(after), "no point is measured twice"
    assert [point.tuning for point in found.points] == [point.tuning for point in after]


def test_a_search_whose_pod_is_killed_leaves_the_claim_as_it_was(searching: Pod) -> None:
    stage, request = start_and_wait(searching, "gone")
    for process in below(stage.pid):
        os.kill(process, signal.SIGKILL)
    stage.wait(60)
    assert not searching.measurement("gone").exists()
    assert not layout.search_directory("gone", searching.root).exists()
    assert searched(searching, request).points


def test_what_does_not_load_or_answers_otherwise_is_refused_and_not_tried_again(searching: Pod) -> None:
    model = layout.model_repository(REVISION, searching.root) / "linear"
    config = (model / "config.pbtxt").read_text()
    (model / "config.pbtxt").write_text(config.replace('name: "LOGITS"', 'name: "NOBODY"'))
    try:
        found = searched(searching, search_request(searching, "refused"))
    finally:
        (model / "config.pbtxt").write_text(config)
    assert found.ended in ("Converged", "MeasurementsSpent")
    assert all(point.row is None for point in found.points)
    assert all(point.refused.startswith("tritonserver says: ") for point in found.points)
    assert [entry.kind for entry in entries(searching, "refused")] == [BEGAN, REFUSED] * len(found.points)


def below(pid: int) -> list[int]:
    """A process and all that it started, the last first."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    children = [child for each in lists for child in each.read_text().split()]
    return [each for child in children for each in below(int(child))] + [pid]
