"""A sweep's points: a row for each, longer windows on instability, and no row taken on trust."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_perf_analyzer import COUNT, HEADER, TARGET, TIME, UNSTABLE

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Constraint, InputShape, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.measuring.budget import Budget
from triton_converters.measuring.pace import in_words
from triton_converters.measuring.perf_analyzer import Point
from triton_converters.measuring.sweep import Invocation, Plan, measure, points, rates, run_process
from triton_plugin.reading.job_log import JobLog, latest_line, sweeps


def value(argv: Sequence[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def write_row(argv: Sequence[str], directory: Path) -> None:
    line = f"{value(argv, '--concurrency-range')},1000,2,261,280,24,250,142,1,918,1225,1324,1690,961,3,952"
    (directory / value(argv, "-f")).write_text(f"{HEADER}\n{line}\n")


RECONNECTED = """\
  Pass [3] cb::Error: Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent \
requests.
Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent requests.
Thread [1] had error: GOAWAY received; Error code: 0; Debug Text:
"""


class Tool:
    """Stands for perf_analyzer: gives a row from the n-th attempt at a point on."""

    def __init__(self, attempts: int, exit_code: int = 0, output: str = UNSTABLE) -> None:
        self.attempts, self.exit_code, self.output = attempts, exit_code, output
        self.argvs: list[Sequence[str]] = []
        self.seconds: list[float] = []

    def __call__(self, argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        self.argvs.append(argv)
        self.seconds.append(seconds)
        if sum(value(each, "-f") == value(argv, "-f") for each in self.argvs) >= self.attempts:
            write_row(argv, directory)
            return Invocation(0, "fine")
        return Invocation(self.exit_code, self.output)


def failure(tmp_path: Path, invoke: Callable[[Sequence[str], Path, float], Invocation]) -> StageError:
    with pytest.raises(StageError) as error:
        measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], invoke)
    assert error.value.reason is Reason.MEASUREMENT_FAILED
    assert not error.value.final
    return error.value


def test_each_point_is_a_line_of_the_log_as_watch_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(Plan(TARGET, COUNT, tmp_path), points("online", Sweep((1,), (1, 2), False)), Tool(1))
    log = capsys.readouterr().out
    assert latest_line("profile", log) == latest_line("measure", log)
    assert latest_line("measure", log).startswith("online 2/2: batch 1, concurrency 2: 1000.0 inferences/s, p99 ")


def test_points_are_the_product_of_batch_sizes_and_concurrencies() -> None:
    found = points("offline", Sweep((1, 8), (1, 2), True))
    assert [(each.batch_size, each.concurrency) for each in found] == [(1, 1), (1, 2), (8, 1), (8, 2)]


class Saturating(Tool):
    """Answers 1,000 requests a second at most, from four workers on."""

    def __call__(self, argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        super().__call__(argv, directory, seconds)
        report = directory / value(argv, "-f")
        throughput = min(1000, 250 * int(value(argv, "--concurrency-range")))
        report.write_text(report.read_text().replace(",1000,", f",{throughput},"))
        return Invocation(0, "fine")


def test_a_sweep_ends_once_the_throughput_no_longer_rises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = points("online", Sweep((1,), (1, 2, 4, 8, 16, 32, 64), False))
    found = measure(Plan(TARGET, COUNT, tmp_path, budget=Budget(until_saturated=True)), wanted, Saturating(1))
    assert [row.concurrency for row in found.rows] == [1, 2, 4, 8, 16]
    assert "the throughput no longer rises; 2 points are not measured" in capsys.readouterr().out
    whole = measure(Plan(TARGET, COUNT, tmp_path), wanted, Saturating(1))
    assert len(whole.rows) == 7


class OfShapes(Tool):
    """Answers 1,000, 500 or 100 requests a second, by the number in the input's name; 200 for the mixed file."""

    def __call__(self, argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        super().__call__(argv, directory, seconds)
        report, name = directory / value(argv, "-f"), value(argv, "--input-data")
        throughput = {"shape-1.json": 1000, "shape-2.json": 500, "shape-3.json": 100, "mixed.json": 200}[name]
        report.write_text(report.read_text().replace(",1000,", f",{throughput},"))
        return Invocation(0, "fine")


def mixed_plan(directory: Path) -> Plan:
    of_shapes = tuple(
        replace(TARGET, input_data=f"shape-{number}.json", shapes=(InputShape("X", (length,)),), weight=samples)
        for number, length, samples in ((1, 3, 6), (2, 5, 3), (3, 9, 1))
    )
    return Plan(replace(TARGET, input_data="mixed.json", samples=64), COUNT, directory, of_shapes=of_shapes)


def test_requests_of_one_sample_are_sent_in_their_own_shapes_in_windows_that_hold_all_of_them(tmp_path: Path) -> None:
    tool = OfShapes(1)
    (found,) = measure(mixed_plan(tmp_path), [Point("online", 1, 1)], tool).rows
    (argv,) = tool.argvs
    assert (value(argv, "--input-data"), value(argv, "-b")) == ("mixed.json", "1")
    assert "--shape" not in argv
    assert value(argv, "--measurement-request-count") == "64"
    # The server sees each shape before it counts.
    assert value(argv, "--warmup-request-count") == "64"
    assert found.throughput == 200


def test_requests_of_several_samples_are_measured_for_each_shape_and_make_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = OfShapes(1)
    found = measure(mixed_plan(tmp_path), points("offline", Sweep((1, 8), (1,), False)), tool)
    assert [(value(argv, "--input-data"), value(argv, "-f")) for argv in tool.argvs] == [
        ("mixed.json", "offline-batch1-concurrency1.csv"),
        ("shape-1.json", "offline-batch8-concurrency1-shape1.csv"),
        ("shape-2.json", "offline-batch8-concurrency1-shape2.csv"),
        ("shape-3.json", "offline-batch8-concurrency1-shape3.csv"),
    ]
    assert [value(argv, "--shape") for argv in tool.argvs[1:]] == ["X:3", "X:5", "X:9"]
    assert [row.batch_size for row in found.rows] == [1, 8]
    # Ten samples take 6/1000 + 3/500 + 1/100 seconds.
    assert found.rows[1].throughput == pytest.approx(10 / 0.022)
    assert "--input-data mixed.json" in found.command
    assert "offline 2/2: batch 8, concurrency 1: 454.5 inferences/s" in capsys.readouterr().out


def test_the_time_of_a_load_counts_all_of_its_shapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = mixed_plan(tmp_path)
    slow = tuple(replace(each, sample_seconds=0.1) for each in plan.of_shapes)
    plan = replace(plan, target=replace(plan.target, sample_seconds=0.1), of_shapes=slow)
    measure(plan, [Point("offline", 2, 1)], OfShapes(1))
    # For each shape, three windows of 50 requests of two samples, and perf_analyzer's start.
    assert "so this point takes about 93 s" in capsys.readouterr().out


def test_a_request_rate_confirms_the_saturation(tmp_path: Path) -> None:
    sweep = Sweep((2,), (1, 2, 4, 8, 16), False)
    rows = measure(Plan(TARGET, COUNT, tmp_path), points("online", sweep), Saturating(1)).rows
    found = rates(OpenLoop((100,), confirmed_percent=70), sweep, rows)
    assert [(each.rate, each.batch_size, each.concurrency) for each in found] == [(100, 2, 0), (350, 2, 0)]
    late = OpenLoop((), 70, (Constraint("P99LatencyMicroseconds", None, 10.0),))
    assert rates(late, sweep, rows) == ()
    assert rates(OpenLoop(()), sweep, rows) == ()


def test_without_batch_dimension_a_request_is_sent_as_it_is_and_its_samples_are_counted(tmp_path: Path) -> None:
    tool = Tool(1)
    wanted = points("offline", Sweep((256,), (1,), True), batched=False)
    row = measure(Plan(TARGET, COUNT, tmp_path), wanted, tool).rows[0]
    assert value(tool.argvs[0], "-b") == "1"
    assert (row.batch_size, row.throughput) == (256, 256_000.0)


def test_every_point_asked_for_gives_its_row_in_order(tmp_path: Path) -> None:
    tool = Tool(1)
    wanted = points("online", Sweep((1,), (1, 2, 4), False))
    found = measure(Plan(TARGET, COUNT, tmp_path), wanted, tool)
    assert [(row.concurrency, row.stable) for row in found.rows] == [(1, True), (2, True), (4, True)]
    assert len(tool.argvs) == 3
    assert found.command.startswith("perf_analyzer -m digits")
    assert "--concurrency-range 1 " in found.command
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv"] * 3 + [".log"] * 3


def test_an_unstable_point_is_looked_at_longer_and_stays_stable(tmp_path: Path) -> None:
    tool = Tool(2)
    found = measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], tool)
    assert found.rows[0].stable
    # Twice 50 would still be a window of one second: the retry asks for more than one second's worth.
    assert [value(argv, "--measurement-request-count") for argv in tool.argvs] == ["50", "6162"]
    assert "--measurement-request-count 6162" in found.command


@pytest.mark.parametrize("exit_code", [0, 2])
def test_a_point_that_never_settles_gives_a_row_that_says_so(tmp_path: Path, exit_code: int) -> None:
    tool = Tool(3, exit_code)
    found = measure(Plan(TARGET, TIME, tmp_path), [Point("online", 1, 4)], tool)
    assert not found.rows[0].stable
    assert [value(argv, "--measurement-mode") for argv in tool.argvs] == [
        "time_windows",
        "time_windows",
        "count_windows",
    ]
    assert [value(argv, "--stability-percentage") for argv in tool.argvs] == ["25", "25", "1000000"]


def test_exit_code_zero_without_a_row_is_a_failure_that_quotes_the_tool(tmp_path: Path) -> None:
    message = failure(tmp_path, Tool(9, output="thread 3 failed\nbad things")).message
    assert "batch 1, concurrency 4 (online) ended with exit code 0 without a row" in message
    assert "thread 3 failed | bad things" in message


def test_a_renewed_connection_is_no_failure(tmp_path: Path) -> None:
    """Seen with a server under load: it renews each connection after 7 s, and perf_analyzer then ends."""
    tool = Tool(3, 99, RECONNECTED)
    found = measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], tool)
    assert found.rows[0].stable
    assert [value(argv, "--measurement-request-count") for argv in tool.argvs] == ["50", "50", "50"]


def test_a_server_that_always_renews_connections_is_a_failure(tmp_path: Path) -> None:
    assert "GOAWAY received" in failure(tmp_path, Tool(9, 99, RECONNECTED)).message


@pytest.mark.parametrize("ended", ["by the kernel", "by us"])
def test_a_tool_that_took_too_much_memory_is_run_with_fewer_requests(tmp_path: Path, ended: str) -> None:
    argvs: list[Sequence[str]] = []

    def large(argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        argvs.append(argv)
        if len(argvs) == 1 and ended == "by us":
            raise MemoryError("took 9 MiB of memory, and 8 are allowed")
        if len(argvs) == 1:
            return Invocation(-9, "Pass [1] throughput: 600")
        write_row(argv, directory)
        return Invocation(0, "fine")

    target = replace(TARGET, sample_bytes=1_000_000, memory_bytes=1_000_000_000)
    measurement = replace(COUNT, request_count=1000)
    found = measure(Plan(target, measurement, tmp_path), [Point("online", 1, 4)], large)
    assert not found.rows[0].stable
    assert [value(argv, "--measurement-request-count") for argv in argvs] == ["40", "4"]


def test_a_tool_that_takes_too_much_memory_twice_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"spec\.conversion\.pod\.resources") as caught:
        measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], Tool(9, -9, "Pass [1] throughput: 600"))
    assert (caught.value.reason, caught.value.final) == (Reason.OUT_OF_MEMORY, False)


def test_a_row_beside_a_failing_exit_code_is_not_taken(tmp_path: Path) -> None:
    def half(argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        write_row(argv, directory)
        return Invocation(99, "error: lost the server")

    assert "error: lost the server" in failure(tmp_path, half).message


def test_a_report_of_an_earlier_attempt_is_not_taken_for_this_one(tmp_path: Path) -> None:
    write_row(("-f", "online-batch1-concurrency4.csv", "--concurrency-range", "4"), tmp_path)
    assert "without a row" in failure(tmp_path, Tool(9, output="nothing")).message


def test_a_report_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    def broken(argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        (directory / value(argv, "-f")).write_text("what?\n")
        return Invocation(0, "")

    assert "report that cannot be used: it has 0 rows" in failure(tmp_path, broken).message


def test_an_endless_invocation_is_a_failure(tmp_path: Path) -> None:
    def endless(argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        raise TimeoutError("Request concurrency: 4")

    message = failure(tmp_path, endless).message
    assert "did not end within 600 s with windows of 5 requests: Request concurrency: 4" in message


def test_long_windows_are_given_their_time(tmp_path: Path) -> None:
    tool = Tool(1)
    measure(Plan(TARGET, TIME, tmp_path), [Point("online", 1, 4)], tool)
    assert tool.seconds == [600 + 5 * 1.2 * 0.3]


class SlowModel:
    """Stands for perf_analyzer and a server that takes so many seconds for a request, whatever the load."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.requests: list[int] = []

    def __call__(self, argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        window = int(value(argv, "--measurement-request-count"))
        self.requests.append(window)
        if self.seconds * (int(value(argv, "--warmup-request-count")) + 3 * window) > seconds:
            raise TimeoutError("it printed nothing")
        write_row(argv, directory)
        return Invocation(0, "fine")


@pytest.mark.parametrize(("request_seconds", "requests"), [(0.3, 50), (1.0, 20), (4.0, 5), (480.0, 3)])
def test_a_slow_model_is_given_its_time_and_a_very_slow_one_fewer_requests(
    tmp_path: Path, request_seconds: float, requests: int
) -> None:
    model = SlowModel(request_seconds)
    target = replace(TARGET, sample_seconds=request_seconds / 8)
    found = measure(Plan(target, COUNT, tmp_path), [Point("offline", 8, 1)], model)
    assert found.rows[0].stable
    assert model.requests == [requests]


def test_a_slow_model_that_never_settles_is_not_asked_for_windows_that_cannot_be_longer(tmp_path: Path) -> None:
    tool = Tool(2)
    target = replace(TARGET, sample_seconds=1.0)
    found = measure(Plan(target, COUNT, tmp_path), [Point("online", 1, 1)], tool)
    assert not found.rows[0].stable
    assert [value(argv, "--measurement-request-count") for argv in tool.argvs] == ["20", "20"]
    assert value(tool.argvs[1], "--stability-percentage") == "1000000"


def test_a_point_that_takes_long_is_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = replace(TARGET, sample_seconds=1.0)
    measure(Plan(target, COUNT, tmp_path), [Point("online", 1, 1)], Tool(1))
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "online 1/1: batch 1, concurrency 1: a request takes about 1.0 s, so this point takes about 61 s, or 3 min if"
        " it does not settle"
    )
    assert second.startswith("online 1/1: batch 1, concurrency 1: 1")
    measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 1)], Tool(1))
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_rest_of_all_sweeps_is_told_and_corrected_as_points_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(step=305)
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr("triton_converters.measuring.sweep.time", clock)
    plan = Plan(replace(TARGET, sample_seconds=1.0), COUNT, tmp_path, later=(Point("online", 1, 1),) * 2)
    measure(plan, [Point("offline", 1, 1)] * 2, Tool(1, 1))
    first, ended, second, last = capsys.readouterr().out.splitlines()
    assert first.endswith("; with the 3 after it about 4 min, at most 11 min at this pace")
    # A point of 61 s took 305 s.
    assert ended.endswith("(took 305.0 s); 3 more, about 15 min")
    assert "so this point takes about 5 min, or 14 min if it does not settle" in second
    assert second.endswith("; with the 2 after it about 15 min, at most 41 min at this pace")
    assert last.endswith("; 2 more, about 10 min")
    logs = (first, ended, f"{ended}\n{second}", f"{ended}\n{second}\n{last}")
    read = [sweeps(JobLog("p", "profile", "onnx-fp32", each)) for each in logs]
    assert [each and (each.left, each.took) for each in read] == [
        (240.0, ()),
        (900.0, (305.0,)),
        (900.0, (305.0,)),
        (600.0, (305.0, 305.0)),
    ]


def test_a_fast_model_says_nothing_of_its_few_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 1)] * 2, Tool(1, 1))
    assert "more, about" not in capsys.readouterr().out


@pytest.mark.parametrize(("seconds", "words"), [(45.2, "45 s"), (119, "119 s"), (740, "12 min"), (12600, "3.5 h")])
def test_times_are_told_in_few_digits(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_time_windows_of_a_slow_model_leave_time_for_its_warm_up(tmp_path: Path) -> None:
    tool = Tool(1)
    target = replace(TARGET, sample_seconds=60.0)
    measure(Plan(target, TIME, tmp_path), [Point("online", 1, 16)], tool)
    assert tool.seconds[0] > 600 + 32 * 60


def test_a_model_slower_than_expected_is_measured_with_fewer_requests(tmp_path: Path) -> None:
    model = SlowModel(10.0)
    found = measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], model)
    assert not found.rows[0].stable
    assert model.requests == [50, 5]
    assert "--measurement-request-count 5 " in found.command


def test_the_fewest_requests_are_one_for_each_worker(tmp_path: Path) -> None:
    model = SlowModel(4.0)
    measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 16)], model)
    assert model.requests == [50, 16]


def test_the_log_holds_each_command_line_and_what_it_printed(tmp_path: Path) -> None:
    measure(Plan(TARGET, COUNT, tmp_path), [Point("online", 1, 4)], Tool(2))
    log = (tmp_path / "online-batch1-concurrency4.log").read_text()
    assert log.count("$ perf_analyzer -m digits") == 2
    assert "Failed to obtain stable measurement within 5" in log


def test_a_real_process_gives_its_output_and_exit_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), flush=True); print('oops', file=sys.stderr); sys.exit(3)"
    done = run_process([sys.executable, "-c", code], tmp_path, 30)
    assert (done.exit_code, done.output.splitlines()) == (3, [str(tmp_path), "oops"])


def test_a_real_process_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    code = "import time; print('started', flush=True); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="started"):
        run_process([sys.executable, "-c", code], tmp_path, 1)
    assert time.monotonic() - started < 50


def test_a_real_process_that_takes_too_much_memory_is_killed(tmp_path: Path) -> None:
    code = "import time; held = bytearray(200_000_000); time.sleep(60)"
    with pytest.raises(MemoryError, match=r"took \d+ MiB of memory, and 95 are allowed"):
        run_process([sys.executable, "-c", code], tmp_path, 60, most_bytes=100_000_000)


def test_a_real_process_has_the_variables_besides_ours(tmp_path: Path) -> None:
    code = "import os; print(os.environ['MALLOC_ARENA_MAX'], 'PATH' in os.environ)"
    done = run_process([sys.executable, "-c", code], tmp_path, 60, {"MALLOC_ARENA_MAX": "2"})
    assert done.output.split() == ["2", "True"]


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="the image has no no-such-program"):
        run_process(["no-such-program"], tmp_path, 1)
