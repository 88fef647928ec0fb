import io

import pytest

from triton_plugin.terminal import WIDTH, console


def test_without_a_terminal_the_tables_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().width == WIDTH


def test_who_says_how_wide_the_output_is_gets_that_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().width == 132
