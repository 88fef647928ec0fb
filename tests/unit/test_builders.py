"""Each kind of object is put together in one place, from a context and little else."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from triton_operator import names
from triton_operator.kube import kinds

ROOT = Path(__file__).resolve().parents[2] / "operator/triton_operator"
DECIDING = ("planning", "stages", "rollout", "jobs", "resources", "candidates", "observed")
MOST_PARAMETERS = 4
FIELDS = {"apiVersion", "kind", "metadata"}
"""What a whole object has. A reference to one has no metadata."""
COPIED = "the kind of another object"
PARTS = {"metadata", "spec"}
"""What a part of a whole object is replaced as, if one is laid over another."""


def parameters_of(function: ast.FunctionDef) -> int:
    """How many parameters a function has; one that takes any number of keywords has no bound, so too many."""
    given = function.args
    named = len([*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg])])
    return named if given.kwarg is None else named + MOST_PARAMETERS + 1


def builders(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the function and its number of parameters, for each object that is written out."""
    for path in sorted(folder.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                where = f"{path.relative_to(ROOT)}:{function.name}"
                yield from ((kind, where, parameters_of(function)) for kind in _kinds(function))


def _kinds(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Dict):
            continue
        pairs = zip(node.keys, node.values, strict=True)
        fields = {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
        if fields.keys() >= FIELDS:
            yield _named(fields["kind"])


def _named(value: ast.expr) -> str:
    """The kind, if it is written as a text or as a constant of names."""
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "names":
        return str(getattr(names, value.attr))
    return str(value.value) if isinstance(value, ast.Constant) else COPIED


def laid_over(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where a whole part of an object is replaced, as by `body | {"spec": ...}`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and isinstance(node.right, ast.Dict):
            over = node.right
        elif isinstance(node, ast.Dict) and None in node.keys:
            over = node
        else:
            continue
        if PARTS & {str(key.value) for key in over.keys if isinstance(key, ast.Constant)}:
            yield node.lineno


def found() -> Mapping[str, list[tuple[str, int]]]:
    by_kind: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for room in DECIDING:
        for kind, where, parameters in builders(ROOT / room):
            by_kind[kind].append((where, parameters))
    return by_kind


FOUND = found()
PLANNED = {each.kind for each in (*kinds.CHILDREN, *kinds.OPTIONAL)} - {kinds.POD.kind}


def test_every_kind_of_the_plan_is_built() -> None:
    assert FOUND.keys() == PLANNED


@pytest.mark.parametrize("kind", FOUND)
def test_a_kind_has_one_builder_of_few_parameters(kind: str) -> None:
    ((where, parameters),) = FOUND[kind]
    assert where.startswith("resources/")
    assert parameters <= MOST_PARAMETERS, where


@pytest.mark.parametrize(
    ("signature", "few"),
    [
        ("a, b, c, d", True),
        ("a, /, b, *, c, d", True),
        ("a, b, c, *d", True),
        ("a, b, c, d, e", False),
        ("a, b, c, d, *e", False),
        ("**a", False),
    ],
)
def test_what_counts_as_a_parameter(signature: str, few: bool) -> None:
    (function,) = ast.parse(f"def f({signature}): pass").body
    assert isinstance(function, ast.FunctionDef)
    assert (parameters_of(function) <= MOST_PARAMETERS) is few


def test_what_builders_are_made_of_has_few_parameters_too() -> None:
    many = {
        f"{path.relative_to(ROOT)} {function.name}"
        for path in sorted((ROOT / "resources").rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and parameters_of(function) > MOST_PARAMETERS
    }
    assert many == set(), f"give what has more than {MOST_PARAMETERS} parameters a value of a type of its own"


def test_a_kind_that_is_copied_is_seen() -> None:
    (function,) = ast.parse('def f(b):\n  return {"apiVersion": b["v"], "kind": b["k"], "metadata": {}}').body
    assert isinstance(function, ast.FunctionDef)
    assert list(_kinds(function)) == [COPIED]


def test_outside_of_the_builders_no_object_is_changed_after_it_was_built() -> None:
    assert list(laid_over(ast.parse('a | {"spec": 1}\n{**a, "metadata": 1}\n{"spec": 1}\na | {"env": 1}'))) == [1, 2]
    rooms = [each for each in DECIDING if each != "resources"]
    files = {path for room in rooms for path in (ROOT / room).rglob("*.py")}
    found = {path: list(laid_over(ast.parse(path.read_text(encoding="utf-8")))) for path in files}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}
