"""The list of NVIDIA's projects whose files are run unchanged: nothing in it is missing or silently skipped."""

import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.user_files import __main__ as program
from tests.user_files.fetch import PACKAGES, STANDINS
from tests.user_files.projects import PROJECTS
from tests.user_files.seeds import SEEDS


def test_every_package_is_pinned_by_its_hash_and_used() -> None:
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([a-z0-9-]+)==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(pinned)
    assert {name for project in PROJECTS for name in project.packages} == {each[1] for each in pinned if each}


def test_every_project_has_weights_and_its_standin() -> None:
    names = [project.name for project in PROJECTS]
    assert sorted(names) == sorted(SEEDS)
    assert len(set(names)) == len(names)
    assert all((STANDINS / project.standin).is_file() for project in PROJECTS if project.standin)


@pytest.mark.parametrize("given", [[], ["--checkout", "/nowhere", "--dllogger", "/nowhere"]])
def test_without_a_checkout_it_ends_with_what_to_do(
    given: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["user_files", *given])
    assert program.main() == 1
    assert "git clone" in capsys.readouterr().err


def test_the_table_says_whose_dataloader_it_was_and_what_was_rehearsed(tmp_path: Path) -> None:
    (standin,) = [project for project in PROJECTS if project.name == "bert-model"]
    rows = [
        program.Row(standin, "reference", True, "4 samples", rehearsed=True),
        program.Row(standin, "onnx", False, "no"),
    ]
    console = Console(width=150)
    with console.capture() as captured:
        console.print(program.table(rows))
    first, second = captured.get().splitlines()[1:3]
    assert first.split()[:4] == ["bert-model", "reference", "yes", "yes"]
    assert "a dataloader of ours" in first
    assert second.split() == ["bert-model", "onnx", "no", "no"]
