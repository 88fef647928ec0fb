"""The stage's walk on a server of paper: parts, budgets, Jobs that are killed, configurations that are refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served_row import BASE, LOADS, row

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import (
    Constraint,
    Load,
    Measurement,
    Objective,
    SearchRequest,
    Sweep,
    Tolerance,
)
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row, SearchResult, Tuning
from triton_converters.contract.search_parts import PART_POINTS
from triton_converters.measuring.environment import Environment
from triton_converters.search import plausible
from triton_converters.search.journal import FILE, MEASURED, REFUSED, Journal
from triton_converters.search.path import Setup
from triton_converters.search.space import Space
from triton_converters.stages.search import produce as search
from triton_plugin.reading.job_log import latest_line

REQUEST = SearchRequest(
    key="k",
    search="s",
    part=0,
    revision="r",
    reference="f",
    profile="p",
    model_name="m",
    max_batch_size=8,
    precision="fp32",
    tolerance=Tolerance(1e-4, 1e-4),
    scenario="online",
    load=Load("localhost:8001", "grpc", "localhost:8000", (), Measurement("CountWindows", 50, 5000, 10)),
    sweep=Sweep((1,), tuple(load.concurrency for load in LOADS), False),
    mode="Quick",
    base=BASE,
    maximum_instances=5,
    vary_cuda_graphs=False,
    objectives=(),
    constraints=(),
    measurements=200,
    seconds=3600,
)


class StoppedError(BaseException):
    """Stands for SIGTERM."""


def crash(*_: object) -> Row:
    raise StageError(Reason.SERVER_CRASHED, "gone", final=False)


@dataclass
class PaperProbe:
    """A probe of the server on paper."""

    refuses: Callable[[Tuning], bool] = lambda tuning: False
    rows: Callable[[Setup], Row] = row
    most: int = 10**6
    """Measurements until the Job is killed."""
    measured: list[Setup] = field(default_factory=list)
    repeated: list[Setup] = field(default_factory=list)
    loaded: Tuning | None = None
    command: str = "perf_analyzer"
    server: Any = field(default_factory=lambda: SimpleNamespace(wait_ready=lambda *_: None))

    def load(self, tuning: Tuning) -> str:
        self.loaded = tuning
        return "tritonserver says: no" if self.refuses(tuning) else ""

    def measure(self, point: Setup, directory: Path, at_least: Row | None = None) -> Row:
        assert self.loaded == point.tuning
        if len(self.measured) >= self.most:
            raise StoppedError
        (self.repeated if at_least else self.measured).append(point)
        return self.rows(point)


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment("2.51.0", "cpu", "", "", "", ())
    monkeypatch.setattr(search, "observe", lambda server, commands: replace(environment, perf_analyzer=commands))


def searched(directory: Path, probe: PaperProbe, **changes: Any) -> SearchResult:
    request = replace(REQUEST, **changes)
    profiled = {Setup(BASE, load): row(Setup(BASE, load)) for load in LOADS}
    space, journal = Space.of(request), Journal(directory)
    found = search.Search(request, space, journal, probe, profiled).run()
    plausible.check(request, found, directory)
    plausible.check_points(space, ((entry.tuning, entry.row) for entry in journal.entries), directory)
    return found


def all_parts(directory: Path, probe: PaperProbe, **changes: Any) -> list[SearchResult]:
    results = [searched(directory, probe, **changes)]
    while not results[-1].ended:
        results.append(searched(directory, probe, part=len(results), **changes))
    return results


def test_a_search_ends_with_its_two_best_measured_once_more(tmp_path: Path) -> None:
    probe = PaperProbe()
    found = searched(tmp_path, probe)
    assert (found.ended, found.search) == ("Converged", "s")
    assert [point.tuning for point in found.points] == [point.tuning for point in probe.measured]
    assert found.size > 10 * len(found.points)
    best = max(found.points, key=lambda point: point.row.throughput if point.row else 0.0)
    assert found.repeats[0].tuning == best.tuning
    assert found.repeats[1].tuning != best.tuning
    assert found.environment.perf_analyzer == ("perf_analyzer",)


def test_each_point_is_a_line_of_the_log_as_watch_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = PaperProbe(refuses=lambda tuning: tuning.instances == 3)
    found = searched(tmp_path, probe, measurements=20)
    lines = [line for line in capsys.readouterr().out.splitlines() if latest_line("search", line)]
    assert len(lines) == len(found.points) + len(found.repeats)
    for number, (line, point) in enumerate(zip(lines, found.points, strict=False), start=1):
        assert line.startswith(f"search {number} of at most 20: ")
        assert (f"{point.row.throughput:.1f} inferences/s" if point.row else "refused: tritonserver says: no") in line
    assert all(line.startswith("search of the best once more: ") for line in lines[len(found.points) :])


def test_where_the_base_is_the_best_nothing_is_repeated(tmp_path: Path) -> None:
    found = searched(tmp_path, PaperProbe(refuses=lambda tuning: tuning != BASE))
    assert (found.repeats, {point.row for point in found.points}) == ((), {None})


def test_parts_are_the_path_cut_into_pieces(tmp_path: Path) -> None:
    few = {"mode": "Exhaustive", "maximum_instances": 1, "sweep": Sweep((1,), (1, 2), False)}
    probe = PaperProbe()
    results = all_parts(tmp_path / "parts", probe, **few)
    assert [len(result.points) for result in results[:-1]] == [PART_POINTS] * (len(results) - 1)
    assert [result.ended for result in results] == [""] * (len(results) - 1) + ["Complete"]
    told = [(point.tuning, point.row.concurrency) for result in results for point in result.points if point.row]
    assert told == [(point.tuning, point.load.concurrency) for point in probe.measured]
    assert len(set(told)) == len(told) == results[0].size - 2, "the base's two are the profile's"
    assert results[-1].seconds >= results[0].seconds


def test_a_later_part_walks_as_the_earlier_ones_where_only_a_heavy_load_is_refused(tmp_path: Path) -> None:
    def fails(point: Setup) -> bool:
        return point.tuning.instances == 1 and point.load.concurrency == 2 and point.tuning != BASE

    probe = PaperProbe(rows=lambda point: crash() if fails(point) else row(point))
    results = all_parts(tmp_path, probe, mode="Exhaustive", maximum_instances=2, sweep=Sweep((1,), (1, 2), False))
    told = [(point.tuning, point.row.concurrency) for result in results for point in result.points if point.row]
    assert len(results) > 2
    assert told == [(point.tuning, point.load.concurrency) for point in probe.measured if not fails(point)]


@pytest.mark.parametrize("most", range(0, 8, 2))
def test_a_job_that_was_stopped_is_gone_on_with(tmp_path: Path, most: int) -> None:
    stopped, again, whole = PaperProbe(most=most), PaperProbe(), PaperProbe()
    with pytest.raises(StoppedError):
        searched(tmp_path / "stopped", stopped)
    with (tmp_path / "stopped" / FILE).open("a") as file:
        file.write('{"kind": "measured", "tuning": {"max_ba')
    found = searched(tmp_path / "stopped", again)
    uninterrupted = searched(tmp_path / "whole", whole)
    assert stopped.measured + again.measured == whole.measured
    assert found.points == uninterrupted.points
    assert (tmp_path / "stopped" / FILE).read_text().endswith("}\n")


def test_a_finished_search_is_told_again_without_measuring(tmp_path: Path) -> None:
    first, again = PaperProbe(), PaperProbe()
    assert searched(tmp_path, first) == searched(tmp_path, again)
    assert (again.measured, again.repeated) == ([], [])


def test_another_objective_measures_only_what_the_first_did_not(tmp_path: Path) -> None:
    first, second = PaperProbe(), PaperProbe()
    searched(tmp_path, first)
    searched(tmp_path, second, constraints=(Constraint("P99LatencyMicroseconds", None, 800.0),))
    assert second.measured
    assert not set(first.measured) & set(second.measured)


@pytest.mark.parametrize("measurements", [3, 8])
def test_the_budget_is_kept_with_the_repeats(tmp_path: Path, measurements: int) -> None:
    probe = PaperProbe()
    found = searched(tmp_path, probe, measurements=measurements)
    assert found.ended == "MeasurementsSpent"
    assert len(found.points) == measurements - 2
    assert len(probe.measured) + len(probe.repeated) <= measurements


def test_the_time_ends_it_before_the_next_point(tmp_path: Path) -> None:
    assert searched(tmp_path, PaperProbe(), seconds=0).ended == "TimeSpent"


def test_what_the_server_refuses_is_told_and_never_tried_again(tmp_path: Path) -> None:
    refuses = PaperProbe(refuses=lambda tuning: tuning.instances == 2)
    found = searched(tmp_path, refuses)
    refused = [point for point in found.points if point.row is None]
    assert {point.tuning.instances for point in refused} == {2}
    assert {point.refused for point in refused} == {"tritonserver says: no"}
    again = searched(tmp_path, PaperProbe(), objectives=(Objective("P99LatencyMicroseconds", 1),))
    assert {point.tuning for point in again.points if point.row is None} <= {point.tuning for point in refused}


def test_a_configuration_under_which_the_server_ends_twice_is_refused(tmp_path: Path) -> None:
    ends = lambda point: crash() if point.tuning.instances == 2 else row(point)  # noqa: E731 - both branches on one line
    found = searched(tmp_path, PaperProbe(rows=ends))
    refused = [point for point in found.points if point.row is None]
    assert {point.tuning.instances for point in refused} == {2}
    assert "ended twice" in refused[0].refused
    assert found.ended == "Converged"


def test_a_configuration_under_which_the_job_was_killed_twice_is_refused(tmp_path: Path) -> None:
    searched(tmp_path / "first", PaperProbe(), measurements=3)
    began = (tmp_path / "first" / FILE).read_text().splitlines(keepends=True)[0]
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / FILE).write_text(2 * began)
    first = searched(tmp_path / "killed", PaperProbe()).points[0]
    assert (first.row, first.refused[:17]) == (None, "the server or the")


def test_a_job_that_is_stopped_again_and_again_refuses_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(StoppedError):
            searched(tmp_path, PaperProbe(most=0))
    assert searched(tmp_path, PaperProbe()).points[0].row is not None


def test_a_configuration_under_which_the_server_hangs_is_lost_and_another_pod_goes_on(tmp_path: Path) -> None:
    def hang(*_: object) -> Row:
        raise StageError(Reason.SERVER_UNREACHABLE, "it hangs", final=False)

    for _ in range(2):
        with pytest.raises(StageError, match="it hangs"):
            searched(tmp_path, PaperProbe(rows=lambda point: hang() if point.tuning.instances == 2 else row(point)))
    result = searched(tmp_path, PaperProbe(rows=lambda point: hang() if point.tuning.instances == 2 else row(point)))
    assert result.ended


def test_the_journal_knows_what_came_of_each_try(tmp_path: Path) -> None:
    searched(tmp_path, PaperProbe(refuses=lambda tuning: tuning.instances == 2))
    kinds = [entry.kind for entry in Journal(tmp_path).entries]
    assert {MEASURED, REFUSED} < set(kinds)
    assert kinds.count("began") == len(kinds) / 2
