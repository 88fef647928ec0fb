"""Every exception from a rule says why: in pyproject.toml, and at the line that needs it."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
ROOMS = (
    "operator",
    "converters",
    "plugin",
    "local",
    "hack",
    "demo",
    "examples",
    "bench",
    "images",
    "manifests",
    "tests",
)
CODES = r"[A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*"
NOQA = re.compile(rf"# noqa\b(?!: {CODES} - \S)")
IGNORED = re.compile(r"# type: ignore\b(?!\[[a-z, -]+\]  # \S)")
"""An exception without a code, or without a clause after it."""


def unexplained(text: str) -> Iterator[int]:
    """Yield the lines that hold one."""
    for number, line in enumerate(text.splitlines(), start=1):
        if NOQA.search(line) or IGNORED.search(line):
            yield number


@pytest.mark.parametrize("room", ROOMS)
def test_every_exception_in_the_code_says_why(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / room).rglob("*.py"))
        if path != Path(__file__).resolve()
        for number in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "write `# noqa: CODE - why`, or `# type: ignore[code]  # why`"


def test_all_rules_are_selected_and_every_one_that_is_ignored_says_why() -> None:
    lint = tomllib.loads(PROJECT)["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    ignored = [*lint["ignore"], *(code for codes in lint["per-file-ignores"].values() for code in codes)]
    section = PROJECT.partition("[tool.ruff.lint]")[2].partition("[tool.mypy]")[0]
    assert sorted(re.findall(r'^  "([A-Z]+[0-9]*)", # \S.*$', section, re.MULTILINE)) == sorted(ignored)


def test_every_part_of_the_code_with_other_types_says_why() -> None:
    tables = re.split(r"^\[\[tool\.mypy\.overrides\]\]$", PROJECT, flags=re.MULTILINE)
    assert all(before.rstrip().splitlines()[-1].startswith("# ") for before in tables[:-1])


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("x = 1  # noqa", True),
        ("x = 1  # noqa: S108", True),
        ("x = 1  # noqa: S108 - an emptyDir", False),
        ("x = 1  # noqa: S108, S311 - an emptyDir", False),
        ("x = 1  # type: ignore", True),
        ("x = 1  # type: ignore[misc]", True),
        ("x = 1  # type: ignore[misc]  # no public name", False),
    ],
)
def test_what_counts_as_a_reason(line: str, bare: bool) -> None:
    assert list(unexplained(line)) == ([1] if bare else [])
