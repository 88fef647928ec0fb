"""No function decides too much to be read at once, and no file holds too much."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("operator", "converters", "plugin", "hack")
MOST_BRANCHES, MOST_LINES = 20, 400
DECIDES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


def branches(node: ast.AST) -> int:
    """How many ways there are out of the nodes below one: conditions, their operands, loops, handlers, assertions."""
    return sum(_weight(each) for each in ast.walk(node))


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, DECIDES))


def files() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("if a and b and c: pass", 3),
        ("x = 1 if a else 2", 1),
        ("[a for a in b if a if c]", 3),
        ("try: pass\nexcept A: pass\nexcept B: pass", 2),
        ("for a in b:\n  while c: assert d", 3),
        ("match a:\n  case 1: pass\n  case _: pass", 2),
    ],
)
def test_what_counts_as_a_branch(code: str, found: int) -> None:
    assert branches(ast.parse(code)) == found


def test_no_function_has_more_branches_than_can_be_read_at_once() -> None:
    large = {
        f"{path.relative_to(ROOT)} {node.name}"
        for path in files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and branches(node) > MOST_BRANCHES
    }
    assert large == set(), f"split what has more than {MOST_BRANCHES} branches"


def test_no_file_is_longer_than_can_be_known() -> None:
    long = [str(path.relative_to(ROOT)) for path in files() if len(path.read_text().splitlines()) > MOST_LINES]
    assert long == [], f"split what has more than {MOST_LINES} lines"
