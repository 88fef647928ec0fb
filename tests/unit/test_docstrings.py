"""A docstring stands alone: it says what is raised and why a number is what it is, and needs no line above it.

`help()` and editors show one docstring without those around it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
    for room in ("operator", "converters", "plugin", "local", "hack")
    for path in sorted((ROOT / room).rglob("*.py"))
}
PRONOUN = re.compile(
    r"(?:It|Its|They|Their|Them|These|Those|That|Both|The same|On the same)\b(?! (?:is|are) no )"
    r"|(?:Whether|When|How|Why|Where) (?:\w+ )?(?:it|its|they|them)\b"
    r"|(?:Keys?|Names?) of (?:it|its|them|those)\b"
)
Rule = Callable[[ast.Module], Iterator[tuple[int, str]]]
RAISES = re.compile(r"\b[Rr]aises?\b")
NUMBER = (ast.Constant, ast.UnaryOp, ast.BinOp)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, those below attributes and constants too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def public(body: list[ast.stmt]) -> Iterator[Function]:
    """Yield the public functions, and the public methods of public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body)
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield node


def raised(function: Function) -> Iterator[str]:
    """Yield what a function itself raises: a class, or what makes it. What it merely raises again is not among it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func).rpartition(".")[2]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id[0].isupper():
            yield node.exc.id
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def untold(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield functions whose docstring does not name what they raise; of an error that a helper makes, only that."""
    for function in public(tree.body):
        text = ast.get_docstring(function) or ""
        for error in sorted(set(raised(function))):
            if not RAISES.search(text) or (error[0].isupper() and error not in text):
                yield function.lineno, f"{function.name} raises {error}"


def unexplained(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield constants with a number and no docstring; one below several of them is of all."""
    waiting: list[tuple[int, str]] = []
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            waiting = []
            continue
        name = _number(node)
        if name is None:
            yield from waiting
            waiting = []
        elif name:
            waiting.append((node.lineno, name))
    yield from waiting


def _number(node: ast.stmt) -> str | None:
    """The name of a constant with a number; empty for another constant; None for what is no assignment."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return ast.unparse(target) if values and all(map(_is_number, values)) else ""


def _is_number(value: ast.expr | None) -> bool:
    if not isinstance(value, NUMBER):
        return False
    parts = [each for each in ast.walk(value) if isinstance(each, ast.Constant)]
    return bool(parts) and all(
        isinstance(each.value, int | float) and not isinstance(each.value, bool) for each in parts
    )


def leaning(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings that begin with a word for what stands somewhere else."""
    for line, text in documented(tree):
        if PRONOUN.match(text):
            yield line, text.splitlines()[0]


RULES: tuple[Rule, ...] = (untold, unexplained, leaning)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_docstrings_stand_alone(rule: Rule) -> None:
    found = [f"{path}:{line}: {what}" for path, tree in SOURCES.items() for line, what in rule(tree)]
    assert found == [], "\n" + "\n".join(found)


CODE = '''
FIRST = 1
SECOND, THIRD = 2, -3.5
"""Why both."""
FOURTH = 4 * FIRST
NAMES = ("a", "b")


def tell(number):
    """Those of the others."""
    raise ValueError("x")


def lean(number):
    """Whether it is odd."""


def fine(number):
    """Return it. Raises ValueError if it is odd."""
    def inner():
        raise KeyError("y")
    raise ValueError("x")
'''


def test_what_is_found() -> None:
    tree = ast.parse(CODE)
    assert [what for _, what in untold(tree)] == ["tell raises ValueError"]
    assert [what for _, what in unexplained(tree)] == ["FOURTH"]
    assert [what for _, what in leaning(tree)] == ["Those of the others.", "Whether it is odd."]
    without = ast.parse(CODE.replace('"""Why both."""', ""))
    assert [what for _, what in unexplained(without)] == ["FIRST", "(SECOND, THIRD)", "FOURTH"]
