import io

import pytest
from rich.console import Console

from triton_plugin.tables import Grid

ROWS = [
    ["onnx-fp32-of-a-model-with-a-long-name", "12345678.9", "", "", "it is slower than the other one by a lot"],
    ["script", "1.5", "-3.4 %", "", ""],
]
GRID = Grid("Candidates", ("Candidate", "Inferences/second", "Change", "Nobody's", "Message"), ROWS)


def printed(width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(GRID)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return str(text)


@pytest.mark.parametrize("width", range(36, 200, 8))
def test_no_figure_and_no_word_is_cut_off_however_narrow_the_terminal(width: int) -> None:
    text = printed(width)
    for whole in ("12345678.9", "1.5", "-3.4 %", *ROWS[0][4].split()):
        assert whole in text
    assert "…" not in text


def test_it_is_a_table_where_there_is_room_and_one_row_after_the_other_elsewhere() -> None:
    assert "━" in printed(100)
    narrow = printed(40)
    assert "━" not in narrow
    assert "Change             -3.4 %" in narrow
    assert narrow.count("Message") == 1, "what a row lacks is not named"
    assert "Nobody's" not in printed(100) + narrow
