"""perf_analyzer's command line, its report and its complaints; texts are those of the 2.60.0 binary."""

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.measurement_requests import InputShape, Measurement
from triton_converters.contract.results import Row
from triton_converters.measuring.perf_analyzer import (
    Point,
    Run,
    Target,
    Windows,
    allocator,
    first_run,
    most_requests_per_second,
)
from triton_converters.measuring.perf_output import (
    ReportError,
    is_client_bound,
    is_reconnecting,
    is_unstable,
    last_lines,
    parse_report,
    requests_per_second,
    spread,
)

HEADER = (
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
    "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency,"
    "Avg latency,request/response,response wait"
)
REPORT = f"{HEADER}\n4,24988.6,2,261,280,24,250,142,1,918,1225,1324,1690,961,3,952\n"
UNSTABLE = """Request concurrency: 4
  Pass [1] throughput: 3428.3 infer/sec. Avg latency: 1156 usec (std 570 usec).
  Pass [2] throughput: 4107.77 infer/sec. Avg latency: 966 usec (std 221 usec).
Failed to obtain stable measurement within 5 measurement windows for concurrency 4. Please try to increase the \
--measurement-interval.
Failed to obtain stable measurement.
"""
TARGET = Target("digits", "127.0.0.1:8001", "grpc", "/repository/.triton-operator/references/a/perf.json", ())
POINT = Point("online", 1, 4)
RATE = Point("request_rate", 1, 0, rate=100)
RATE_REPORT = (
    HEADER.replace("Concurrency", "Request Rate")
    + "\n100,104.169,124,632,663,37,747,82,0,1332,4886,6339,19327,2287,124,2154\n"
)
KEPT_UP = (
    "    [WARNING] Perf Analyzer was not able to keep up with the desired request rate."
    " 1.60% of the requests were delayed. \n"
)
COUNT = Measurement("CountWindows", 50, 5000, 10)
TIME = Measurement("TimeWindows", 50, 300, 25)


def test_the_command_line_of_an_online_point() -> None:
    assert shlex.join(first_run(COUNT, TARGET, POINT).arguments()) == (
        "perf_analyzer -m digits -u 127.0.0.1:8001 -i grpc -b 1 --concurrency-range 4"
        " --input-data /repository/.triton-operator/references/a/perf.json --warmup-request-count 10"
        " --measurement-mode count_windows --measurement-request-count 50 --stability-percentage 10 --max-trials 5"
        " -v --verbose-csv -f online-batch1-concurrency4.csv"
    )


def test_the_command_line_of_an_offline_point_with_shapes_and_shared_memory() -> None:
    target = Target("m", "[::1]:8000", "http", "perf.json", (InputShape("A", (3, 4)), InputShape("B", (7,))))
    assert shlex.join(first_run(TIME, target, Point("offline", 32, 1)).arguments(40)) == (
        "perf_analyzer -m m -u '[::1]:8000' -i http -b 32 --concurrency-range 1 --input-data perf.json"
        " --shape A:3,4 --shape B:7 --shared-memory system --output-shared-memory-size 40 --warmup-request-count 10"
        " --measurement-mode time_windows --measurement-interval 300 --stability-percentage 25 --max-trials 5"
        " -v --verbose-csv -f offline-batch32-concurrency1.csv"
    )


def test_the_command_line_of_a_request_rate() -> None:
    assert shlex.join(first_run(COUNT, TARGET, RATE).arguments()) == (
        "perf_analyzer -m digits -u 127.0.0.1:8001 -i grpc -b 1 --request-rate-range 100 --request-distribution poisson"
        " --max-threads 256 --input-data /repository/.triton-operator/references/a/perf.json"
        " --warmup-request-count 256 --measurement-mode count_windows --measurement-request-count 400"
        " --stability-percentage 10 --max-trials 5 -v --verbose-csv -f request_rate-batch1-rate100.csv"
    )


@pytest.mark.parametrize(
    ("rate", "measurement", "size"),
    [
        (100, COUNT, 400),
        (100, replace(COUNT, stability_percentage=50), 50),
        (5, COUNT, 150),
        (1, COUNT, 50),
        (100, replace(COUNT, request_count=1000), 1000),
        (100, TIME, 640),
        (1, replace(TIME, stability_percentage=10), 30_000),
    ],
)
def test_windows_hold_enough_random_arrivals(rate: int, measurement: Measurement, size: int) -> None:
    point = replace(RATE, rate=rate)
    assert first_run(measurement, TARGET, point).windows.size == size


@pytest.mark.parametrize(("rate", "threads"), [(1, 16), (2, 20), (25, 250), (1000, 256)])
def test_an_open_loop_has_a_bounded_number_of_threads_and_warms_up_each(rate: int, threads: int) -> None:
    point = replace(RATE, rate=rate)
    assert (point.workers, first_run(COUNT, TARGET, point).warmup_requests) == (threads, threads)


def test_a_request_rate_gets_the_time_that_its_requests_take_to_arrive() -> None:
    run = first_run(COUNT, TARGET, replace(RATE, rate=1))
    assert run.most_seconds >= 600 + 16 + run.windows.trials * run.windows.size


def test_the_report_of_a_request_rate_becomes_a_row() -> None:
    row = parse_report(RATE_REPORT, RATE, stable=True)
    assert (row.concurrency, row.request_rate, row.throughput, row.p99) == (0, 100, 104.169, 19327)


@pytest.mark.parametrize(
    ("text", "point"), [(RATE_REPORT, POINT), (REPORT, RATE), (RATE_REPORT, replace(RATE, rate=99))]
)
def test_a_report_of_another_load_is_refused(text: str, point: Point) -> None:
    with pytest.raises(ReportError):
        parse_report(text, point, stable=True)


def test_a_client_that_sends_late_is_the_limit() -> None:
    assert not is_client_bound(KEPT_UP)
    assert is_client_bound(KEPT_UP.replace("1.60", "99.90"))


def test_every_concurrent_worker_is_warmed_up() -> None:
    argv = first_run(COUNT, TARGET, Point("online", 1, 256)).arguments()
    assert argv[argv.index("--warmup-request-count") + 1] == "512"


@pytest.mark.parametrize(
    ("batch_size", "concurrency", "sample_seconds", "requests"),
    [(1, 1, 0.0, 10), (1, 1, 0.25, 10), (1, 1, 0.5, 6), (2, 1, 0.75, 3), (8, 1, 30.0, 3), (1, 16, 1.0, 32)],
)
def test_a_slow_model_is_warmed_up_by_fewer_requests(
    batch_size: int, concurrency: int, sample_seconds: float, requests: int
) -> None:
    target = replace(TARGET, sample_seconds=sample_seconds)
    assert first_run(COUNT, target, Point("online", batch_size, concurrency)).warmup_requests == requests


def test_points_of_one_scenario_differ_in_batch_concurrency_and_file_only() -> None:
    one, other = (first_run(COUNT, TARGET, Point("online", b, c)).arguments() for b, c in ((1, 2), (8, 3)))
    assert [a for a, b in zip(one, other, strict=True) if a != b] == ["1", "2", "online-batch1-concurrency2.csv"]


def test_the_report_becomes_a_row() -> None:
    assert parse_report(REPORT, POINT, stable=True) == Row(
        batch_size=1,
        concurrency=4,
        throughput=24988.6,
        client_send=2,
        network=261,
        queue=280,
        compute_input=24,
        compute_infer=250,
        compute_output=142,
        client_receive=1,
        p50=918,
        p90=1225,
        p95=1324,
        p99=1690,
        average=961,
        stable=True,
    )


def test_a_report_with_a_response_cache_has_more_columns() -> None:
    header = HEADER.replace("Client Recv", "Server Cache Hit,Server Cache Miss,Client Recv")
    line = "4,1.23457e+06,2,261,280,24,250,142,5,6,1,918,1225,1324,1690,961,3,952"
    row = parse_report(f"{header}\n{line}\n", POINT, stable=False)
    assert (row.throughput, row.client_receive, row.average, row.stable) == (1234570.0, 1, 961, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        REPORT + REPORT.splitlines()[1] + "\n",
        REPORT.replace("4,24988.6", "3,24988.6"),
        REPORT.replace("24988.6", "0"),
        REPORT.replace("24988.6", "nan"),
        REPORT.replace("24988.6", "-inf"),
        REPORT.replace(",Avg latency", ",Mean latency"),
        REPORT.replace("961", ""),
        REPORT[: REPORT.rindex("1690")],
    ],
    ids=["empty", "no row", "two rows", "other point", "zero", "nan", "infinite", "no average", "blank", "cut"],
)
def test_anything_but_the_one_row_asked_for_is_refused(text: str) -> None:
    with pytest.raises(ReportError):
        parse_report(text, POINT, stable=True)


@given(st.text())
def test_no_text_is_taken_for_a_row_by_accident(text: str) -> None:
    with pytest.raises(ReportError):
        parse_report(text, POINT, stable=True)


def test_instability_is_told_from_other_ends() -> None:
    assert is_unstable(UNSTABLE)
    assert is_unstable("No valid requests recorded within time interval. Please use a larger time window.")
    assert not is_unstable("error: failed to get model metadata: Request for unknown model: 'nope' is not found")


def test_the_rate_is_that_of_the_last_window() -> None:
    assert requests_per_second(UNSTABLE, batch_size=2) == 4107.77 / 2
    assert requests_per_second("Pass [1] cb::Error: x", batch_size=1) == 0.0
    assert requests_per_second("  Pass [1] throughput: 1.5e+06 infer/sec. Avg", batch_size=1) == 1.5e6


@given(st.integers(1, 10**6), st.floats(0, 1e6), st.booleans())
def test_a_retry_looks_at_least_twice_as_long(size: int, rate: float, by_count: bool) -> None:
    first = first_run(Measurement("CountWindows" if by_count else "TimeWindows", size, size, 10), TARGET, POINT)
    following = first.following(rate, None)
    assert following is not None
    asked, again = first.windows, following.windows
    assert again.size >= 2 * size
    assert (again.size >= 1.5 * rate) or not by_count
    assert (again.by_count, again.stability_percentage, again.trials) == (by_count, 10, asked.trials)


@pytest.mark.parametrize(("measurement", "count"), [(COUNT, 6000), (TIME, 50)])
def test_the_last_resort_takes_three_windows_by_count_as_they_are(measurement: Measurement, count: int) -> None:
    longer = first_run(measurement, TARGET, POINT).following(4000, None)
    last = longer and longer.following(4000, None)
    assert last is not None
    assert last.windows.arguments == (
        *("--measurement-mode", "count_windows", "--measurement-request-count", str(count)),
        *("--stability-percentage", "1000000", "--max-trials", "3"),
    )


@pytest.mark.parametrize("excess", [TimeoutError(), MemoryError()])
def test_after_too_much_there_is_one_run_with_fewer_requests(excess: Exception) -> None:
    last = first_run(COUNT, TARGET, POINT).following(0.0, excess)
    assert last is not None
    assert (last.windows.size, last.windows.is_judged) == (5, False)
    assert last.following(0.0, excess) is last.following(0.0, None) is None


def test_the_end_of_the_output_is_quoted_on_one_line() -> None:
    assert last_lines("a\n\n b \nc\nd\ne\nf\n") == "b | c | d | e | f"
    assert last_lines(" \n") == "it printed nothing"
    assert len(last_lines("x" * 100_000)) <= 600


WINDOWS = """Request concurrency: 1
  Pass [1] throughput: 500 infer/sec. Avg latency: 2000 usec (std 12 usec).
  Pass [2] throughput: 900 infer/sec. Avg latency: 1111 usec (std 12 usec).
  Pass [3] throughput: 1000 infer/sec. Avg latency: 1000 usec (std 12 usec).
  Pass [4] throughput: 1100 infer/sec. Avg latency: 909 usec (std 12 usec).
  Client:
    Request count: 3000
    Avg send request rate: 1000.00 infer/sec
    Avg client overhead: {overhead}%
    Avg latency: 1000 usec (standard deviation 30 usec)
"""


def test_the_spread_is_that_of_the_windows_which_make_the_row() -> None:
    assert spread(WINDOWS) == pytest.approx(20.0)


def test_without_windows_there_is_no_spread() -> None:
    assert spread("Failed to obtain stable measurement.") == 0.0


@pytest.mark.parametrize(("overhead", "bound"), [("3.47", False), ("50.00", False), ("50.01", True)])
def test_a_client_that_is_busy_itself_is_marked(overhead: str, bound: bool) -> None:
    assert is_client_bound(WINDOWS.format(overhead=overhead)) is bound


def test_without_a_word_of_its_overhead_the_client_is_not_marked() -> None:
    assert not is_client_bound(UNSTABLE)


LARGE = replace(TARGET, sample_seconds=0.002, sample_bytes=602_112, memory_bytes=8 * 2**30)
"""Images of 224 x 224 pixels."""
TIMED = Windows(by_count=False, size=5000, stability_percentage=10, trials=5)
COUNTED = replace(TIMED, by_count=True, size=3000)
FIT = 570
"""Requests of a window that fit: five times five windows of these images take 8 GiB."""


def affordable(windows: Windows, point: Point, target: Target, rate: float = 0.0) -> Windows:
    return Run(COUNT, target, point, rate, windows).afford(windows).windows


def test_windows_hold_no_more_large_requests_than_fit_into_memory() -> None:
    """Of 3,000 requests each they had perf_analyzer killed at 17 GiB."""
    assert affordable(COUNTED, POINT, LARGE, rate=100) == replace(COUNTED, size=FIT)
    assert 24 * FIT * LARGE.sample_bytes < LARGE.memory_bytes < 26 * FIT * LARGE.sample_bytes
    assert affordable(COUNTED, POINT, replace(LARGE, sample_bytes=1000), rate=100) == COUNTED


def test_a_fast_models_windows_of_large_requests_are_shorter_than_a_second() -> None:
    """A window of requests lasts whole seconds, and at 800 requests of 1 MB a second five of these were too much."""
    found = affordable(replace(COUNTED, size=50), POINT, LARGE, rate=2 * FIT)
    assert (found.by_count, found.size) == (False, 416)
    assert found.size * 1.2 * 2 * FIT / 1000 <= FIT
    assert affordable(TIMED, POINT, LARGE, rate=2 * FIT) == found


def test_a_time_window_becomes_one_of_requests_if_those_of_its_time_are_too_large() -> None:
    assert affordable(TIMED, POINT, LARGE, rate=500) == replace(COUNTED, size=FIT)
    assert affordable(TIMED, POINT, LARGE, rate=50) == affordable(TIMED, POINT, LARGE) == TIMED


def test_a_batch_is_as_large_as_its_samples() -> None:
    assert affordable(COUNTED, replace(POINT, batch_size=8), LARGE, rate=1).size == 71


def test_there_is_a_request_for_each_worker_however_large() -> None:
    huge = replace(LARGE, sample_bytes=2**33)
    assert affordable(COUNTED, replace(POINT, concurrency=16), huge, rate=1).size == 16


@pytest.mark.parametrize(
    ("point", "before", "rate"),
    [
        (RATE, None, 100),
        (replace(POINT, concurrency=2), None, 2 * 3 / 0.002),
        (replace(POINT, concurrency=8), 400.0, 800),
        (replace(POINT, concurrency=2), 400.0, 400),
    ],
)
def test_the_rate_is_estimated_by_the_point_before(point: Point, before: float | None, rate: float) -> None:
    row = None if before is None else replace(parse_report(REPORT, POINT, stable=True), throughput=before)
    assert most_requests_per_second(point, LARGE, row) == pytest.approx(rate)


@pytest.mark.parametrize(
    "words",
    [
        "GOAWAY received; Error code: 0; Debug Text: max_age",
        "Thread [0] had error: recvmsg:Connection reset by peer",
    ],
)
def test_a_renewed_connection_is_told_from_a_failure(words: str) -> None:
    assert is_reconnecting(f"Request concurrency: 2\n{words}\n")
    assert not is_reconnecting("Request concurrency: 2\nFailed to obtain stable measurement\n")


@pytest.mark.parametrize(("batch_size", "kept"), [(1, False), (2, True)])
def test_memory_is_kept_for_large_requests_alone(batch_size: int, kept: bool) -> None:
    target = replace(TARGET, sample_bytes=100_000)
    assert bool(allocator(target, [Point("online", batch_size, 1)])) == kept
