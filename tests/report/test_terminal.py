import io

import pytest

from triton_plugin.telling.progress import Display
from triton_plugin.terminal import WIDTH, console


def test_without_a_terminal_the_tables_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().width == WIDTH


def test_who_says_how_wide_the_output_is_gets_that_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().width == 132


def test_colours_that_are_forced_make_no_live_panel_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().is_terminal
    assert Display(console()).live is None
