"""One name, one thing: no class and no type alias of a package has the name of another one in it.

What the operator and the plugin import from the contract counts as theirs."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("operator/triton_operator", "converters/triton_converters", "plugin/triton_plugin", "local/triton_local")
CONTRACT = "triton_converters.contract"
TRITONS = frozenset({"ModelConfig", "Tensor"})
"""Classes of Triton's Python backend, which user code asks for by these names."""


def named(tree: ast.Module) -> Iterator[str]:
    """Every class, and what a module calls a type: what it assigns to a name in CamelCase."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    targets = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    names = (target.id for target in targets if isinstance(target, ast.Name))
    yield from filter(is_type, names)


def is_type(name: str) -> bool:
    return name.lstrip("_")[:1].isupper() and not name.isupper()


def imported(tree: ast.Module) -> Iterator[str]:
    """Every type that a module imports from the contract."""
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    names = (each.name for node in froms if (node.module or "").startswith(CONTRACT) for each in node.names)
    yield from filter(is_type, names)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_stands_for_two_types(package: str) -> None:
    modules = [ast.parse(path.read_text()) for path in (ROOT / package).rglob("*.py")]
    counted = Counter(name for module in modules for name in named(module) if name not in TRITONS)
    if not package.endswith("triton_converters"):
        counted.update({name for module in modules for name in imported(module)})
    assert modules
    assert [name for name, count in counted.items() if count > 1] == []


def test_classes_aliases_and_type_variables_are_types() -> None:
    code = "class A:\n  class B: pass\nPair = tuple[int, int]\nItem = TypeVar('Item')\nLIMIT = 1\nT = TypeVar('T')\n"
    assert list(named(ast.parse(code))) == ["A", "B", "Pair", "Item"]


def test_types_of_the_contract_are_imported_names() -> None:
    code = "from triton_converters.contract.results import Row, LIMIT, total\nfrom other import Thing\n"
    assert list(imported(ast.parse(code))) == ["Row"]
