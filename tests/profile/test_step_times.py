"""The times of an ensemble's models, from files as perf_analyzer 2.60 wrote them."""

from pathlib import Path

import pytest

from triton_converters.contract.results import Row
from triton_converters.contract.step_times import StepTimes
from triton_converters.measuring.settings import SETTINGS
from triton_converters.measuring.step_times import step_times

HEADINGS = (
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
    "Server Compute Infer,Server Compute Output,Client Recv"
)


def row(concurrency: int) -> Row:
    """A row of requests of one sample."""
    return Row(1, concurrency, 100.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, True)


def write(folder: Path, model: str, concurrency: int, figures: str) -> None:
    """What perf_analyzer writes of a model at a point: network, queue, compute input, infer and output."""
    text = f"{HEADINGS}\n{concurrency},315.84,0,{figures},0\n"
    (folder / f"{model}_v1.online-batch1-concurrency{concurrency}.csv").write_text(text, encoding="utf-8")


def test_the_times_of_each_model_are_read_for_each_row(tmp_path: Path) -> None:
    for concurrency in (1, 12):
        write(tmp_path, "name_v2", concurrency, f"10,{concurrency},69,880,375")
        write(tmp_path, "Decode", concurrency, f"1,{600 + concurrency},21,1471,59")
    rows = (row(1), row(12))
    assert step_times(tmp_path, rows) == (
        StepTimes("Decode", (601, 612), (1551, 1551)),
        StepTimes("name_v2", (1, 12), (1324, 1324)),
    )


def test_a_model_that_is_no_ensemble_has_none(tmp_path: Path) -> None:
    (tmp_path / "online-batch1-concurrency1.csv").write_text("Concurrency\n1\n", encoding="utf-8")
    assert step_times(tmp_path, (row(1),)) == ()
    assert step_times(tmp_path, ()) == ()


@pytest.mark.parametrize("damage", ["", "a,b\n1,2\n", f"{HEADINGS}\n", f"{HEADINGS}\n1,2,3,4,5,6,x,8,9\n"])
def test_where_a_rows_file_cannot_be_read_there_are_no_times(tmp_path: Path, damage: str) -> None:
    write(tmp_path, "name", 1, "10,1,69,880,375")
    (tmp_path / "name_v1.online-batch1-concurrency2.csv").write_text(damage, encoding="utf-8")
    assert step_times(tmp_path, (row(1), row(2))) == ()


def test_more_figures_than_fit_into_a_message_are_left_out(tmp_path: Path) -> None:
    rows = tuple(row(each) for each in range(1, SETTINGS.most_figures + 2))
    for each in rows:
        write(tmp_path, "name", each.concurrency, "10,1,69,880,375")
    assert step_times(tmp_path, rows) == ()
    assert len(step_times(tmp_path, rows[1:])[0].queue) == SETTINGS.most_figures
