"""No function decides too much to be read at once, and no file holds too much."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("operator", "converters", "plugin", "local", "hack")
MOST_BRANCHES, MOST_STATEMENTS, MOST_LINES = 20, 15, 400
SHELL = ROOT / "operator/triton_operator/runtime"
"""What handles events and makes passes: it delegates, so its functions have few statements too."""
IN_ONE_FILE = frozenset({ROOT / "local/triton_local/box.py"})
"""Programs that run by themselves, with nothing else to import."""
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


def statements(function: ast.AST) -> int:
    """How many statements a function has, those of blocks and functions in it included, texts that explain not."""
    found = [each for each in ast.walk(function) if isinstance(each, ast.stmt) and each is not function]
    return sum(not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)) for each in found)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


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
        for node in functions(path)
        if branches(node) > MOST_BRANCHES
    }
    assert large == set(), f"split what has more than {MOST_BRANCHES} branches"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('def f():\n  """Do it."""\n  a = b\n  """Why."""\n  return a', 2),
        ("def f():\n  if a:\n    b()\n  else:\n    c()", 3),
        ("def f():\n  try:\n    a()\n  except B:\n    raise", 3),
        ("async def f():\n  @c\n  def g():\n    return 1\n  class H:\n    a = 1\n  return g", 5),
    ],
)
def test_what_counts_as_a_statement(code: str, found: int) -> None:
    (function,) = ast.parse(code).body
    assert statements(function) == found


def test_no_function_of_the_shell_has_more_statements_than_a_handler_may_have() -> None:
    long = {
        f"{path.relative_to(ROOT)} {node.name}: {statements(node)}"
        for path in sorted(SHELL.rglob("*.py"))
        for node in functions(path)
        if statements(node) > MOST_STATEMENTS
    }
    assert long == set(), f"split what has more than {MOST_STATEMENTS} statements"


def test_no_file_is_longer_than_can_be_known() -> None:
    others = [path for path in files() if path not in IN_ONE_FILE]
    long = [str(path.relative_to(ROOT)) for path in others if len(path.read_text().splitlines()) > MOST_LINES]
    assert long == [], f"split what has more than {MOST_LINES} lines"
