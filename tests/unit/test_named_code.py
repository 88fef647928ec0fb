"""What the pages for contributors call by a name of the code is in the code, and where they say."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from triton_converters.contract.reasons import Reason

ROOT = Path(__file__).resolve().parents[2]
SAY = ("operator", "converters")
ROOMS = (*SAY, "plugin", "local", "hack", "tests")
PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"`(\w+)\([\w, ]*\)`")
NAME = re.compile(r"`(_\w+|(?=\w*[a-z_])[A-Z]\w+|[A-Z]{3,})`")
"""A class, a constant or a private function; a word of letters that are all capitals has three of them at least."""
PLACE = re.compile(r"`([\w./-]+(?:\.py|/))`")
PLACED = re.compile(rf"{NAME.pattern}(?:[^`.;]* (?:in|of)\s+){PLACE.pattern}")
"""A name, and then the file or the folder that it is said to be in."""
OF_KUBERNETES = frozenset({"KUBECONFIG", "ReadWriteMany"})


@cache
def modules() -> dict[Path, str]:
    """The text of each file of the code."""
    paths = (path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


def defined(path: Path, text: str) -> Iterator[str]:
    """Yield the names that a module defines, and of the operator the conditions, which are texts."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif path.parts[0] in SAY and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def every_name() -> frozenset[str]:
    return frozenset(name for path, text in modules().items() for name in defined(path, text)) | set(Reason)


def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def missing(text: str) -> set[str]:
    """The names of a page that nothing in the code has."""
    return {*NAME.findall(text), *CALL.findall(text)} - every_name() - OF_KUBERNETES


def misplaced(text: str) -> set[tuple[str, str]]:
    """The names of a page that the code does not use where the page says."""
    return {(name, place) for name, place in PLACED.findall(text) if not any(map(uses(name), within(place)))}


def within(place: str) -> Iterator[str]:
    """Yield the texts of a file or of a folder's files, by the end of the path."""
    for path, text in modules().items():
        where = f"/{path}" if place.endswith(".py") else f"/{path.parent}/"
        if where.endswith(f"/{place}") or (place.endswith("/") and f"/{place}" in where):
            yield text


def uses(name: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(rf"\b{name}\b").search


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_in_the_code(page: str) -> None:
    assert missing(prose(page)) == set()


def test_what_a_recipe_names_is_where_it_says() -> None:
    text = prose("CONTRIBUTING.md")
    assert len(PLACED.findall(text)) > 10
    assert misplaced(text) == set()


def test_what_is_found() -> None:
    assert missing("A `Statment`, `NOTCES`, `_colums`, `pln()` and a `Statement`, but no `key` or `x.yaml`.") == {
        "Statment",
        "NOTCES",
        "_colums",
        "pln",
    }
    text = "a `Traffic` in `operator/triton_operator/stages/`, and a `Traffic` of that type in `rollout/traffic.py`"
    assert misplaced(text) == {("Traffic", "operator/triton_operator/stages/")}
