"""One name, one thing: no class and no type alias of a package has the name of another one in it."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("operator/triton_operator", "converters/triton_converters", "plugin/triton_plugin")
TRITONS = frozenset({"ModelConfig", "Tensor"})
"""Classes of Triton's Python backend, which user code asks for by these names."""


def named(tree: ast.Module) -> Iterator[str]:
    """Every class, and what a module calls a type: what it assigns to a name in CamelCase."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    targets = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    names = (target.id for target in targets if isinstance(target, ast.Name))
    yield from (name for name in names if name.lstrip("_")[:1].isupper() and not name.isupper())


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_stands_for_two_types(package: str) -> None:
    modules = [ast.parse(path.read_text()) for path in (ROOT / package).rglob("*.py")]
    counted = Counter(name for module in modules for name in named(module) if name not in TRITONS)
    assert modules
    assert [name for name, count in counted.items() if count > 1] == []


def test_classes_aliases_and_type_variables_are_types() -> None:
    code = "class A:\n  class B: pass\nPair = tuple[int, int]\nItem = TypeVar('Item')\nLIMIT = 1\nT = TypeVar('T')\n"
    assert list(named(ast.parse(code))) == ["A", "B", "Pair", "Item"]
