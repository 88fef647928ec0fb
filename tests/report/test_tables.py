import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from tests.report.subjects import FOLDER, RECORDED, searched
from triton_operator.api.status import CandidateStatus, TritonDeploymentStatus
from triton_plugin.reading.cluster import read_file
from triton_plugin.telling import tables
from triton_plugin.telling.columns import milliseconds
from triton_plugin.telling.tables import Grid

ROWS = [
    ["onnx-fp32-of-a-model-with-a-long-name", "12345678.9", "", "", "it is slower than the other one by a lot"],
    ["script", "1.5", "-3.4 %", "", ""],
]
GRID = Grid("Candidates", ("Candidate", "Inferences/second", "Change", "Nobody's", "Message"), ROWS)


def printed(shown: RenderableType, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(shown)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert max(map(len, text.splitlines())) <= width
    return str(text)


def is_table(text: str) -> bool:
    """Whether headings stand above a line, not each to the left of its cell."""
    return not any(line and set(line) == {"─"} and not above.strip() for above, line in pairs(text))


def pairs(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    return zip(["", *lines], lines, strict=False)


@pytest.mark.parametrize("width", range(36, 200, 8))
def test_no_figure_and_no_word_is_cut_off_however_narrow_the_terminal(width: int) -> None:
    text = printed(GRID, width)
    for whole in ("12345678.9", "1.5", "-3.4 %", *ROWS[0][4].split(), "Inferences/second", "Candidate", "Message"):
        assert whole in text
    assert "…" not in text


def test_it_is_a_table_where_there_is_room_and_one_row_after_the_other_elsewhere() -> None:
    wide, narrow = printed(GRID, 100), printed(GRID, 40)
    assert wide.index("Message") < wide.index("12345678.9") < wide.index("script")
    assert "Change             -3.4 %" in narrow
    assert narrow.count("Message") == 1, "what a row lacks is not named"
    assert "Nobody's" not in wide + narrow


def test_room_that_is_left_goes_to_the_words_that_need_it() -> None:
    assert ROWS[0][4] in printed(GRID, 120)


def all_tables(status: TritonDeploymentStatus) -> Iterator[RenderableType]:
    if status.performance is not None:
        yield tables.performance("Offline", status.performance.offline)
        yield tables.performance("Online", status.performance.online)
    yield tables.accuracy(status.accuracy)
    yield tables.candidates(status.candidates, status.signature)


@pytest.mark.parametrize("width", [80, 100, 180])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_what_a_real_run_measured_fits_a_terminal_as_tables(recorded: Path, width: int) -> None:
    status = read_file(str(recorded)).status
    for shown in all_tables(status):
        text = printed(shown, width)
        assert "─" in text
        assert is_table(text)
        assert "…" not in text
    assert status.performance is not None
    rows = [*status.performance.offline, *status.performance.online]
    text = " ".join(printed(shown, width) for shown in all_tables(status))
    for row in rows:
        times = (row.p50_latency, row.p99_latency, row.average_latency, row.client_send_time, row.compute_infer_time)
        for figure in (row.throughput, *map(milliseconds, times)):
            assert f" {figure} " in text
    for heading in ("Inf/s", "P50", "P90", "P95", "P99", "Average", "Network", "Infer", "Candidate", "Framework"):
        assert heading in text


def test_what_all_rows_have_in_common_is_said_once() -> None:
    status = read_file(str(FOLDER / "digits.yaml")).status
    assert status.performance is not None
    text = printed(tables.performance("Online", status.performance.online), 100)
    assert text.splitlines()[1] == (
        "Online: precision fp32, accelerator none, batch size 1, stable yes (latencies in ms)"
    )
    assert text.count("fp32") == 1


@pytest.mark.parametrize(
    ("constraint", "percent", "words"),
    [
        ("p99Latency at most 10ms", "50.0", "p99Latency is 50.0 % below its constraint, at most 10ms"),
        ("p99Latency at most 4ms", "-25.0", "p99Latency is 25.0 % above its constraint, at most 4ms, and misses it"),
        ("throughput at least 80", "20.0", "throughput is 20.0 % above its constraint, at least 80"),
        ("throughput at least 80", "-20.0", "throughput is 20.0 % below its constraint, at least 80, and misses it"),
        (
            "memory at most 8Gi",
            "",
            "memory was not measured, so it does not meet its constraint, at most 8Gi",
        ),
        ("", "", ""),
    ],
)
def test_how_far_a_constraint_is_away_is_said_in_words(constraint: str, percent: str, words: str) -> None:
    candidate = CandidateStatus(name="onnx-fp32", state="Passed", binding_constraint=constraint, margin_percent=percent)
    assert tables.margin(candidate) == words


def test_why_each_candidate_stands_where_it_does_is_said_in_full() -> None:
    status = searched().status
    text = " ".join(printed(tables.reasons(status.candidates), 80).split())
    for each in status.candidates:
        assert f"{each.name}: {each.reason}" in text
        assert each.message in text


def test_an_unstable_measurement_is_marked_beside_its_load() -> None:
    rows = [CandidateStatus(name="a", state="Passed", load="batch 1", stable=each) for each in (True, False, None)]
    loads = [row[5] for row in tables.candidates(rows, None).rows]
    assert loads == ["batch 1", "batch 1 (unstable)", "batch 1"]
