"""The texts that a Python file gives to names, as its syntax tree shows them. Pure."""

import ast
from collections.abc import Mapping

Constants = Mapping[str, str]
"""The names that a file gives to one text alone, each with the text."""


def constants(module: ast.Module) -> Constants:
    """Return the names that the file gives to a text, and to nothing else; variables of the environment among them."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(module):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for each in targets:
            if name := _name(each):
                found.setdefault(name, set()).add(text(value, {}))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def text(node: ast.AST | None, known: Constants) -> str:
    """Return a text, or that of a name; empty: it is none, or not known."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return known.get(_name(node), "")


def _name(node: ast.AST | None) -> str:
    """Return the name of a variable, of a field such as ``self.name``, or of ``os.environ["NAME"]``; empty: another."""
    if isinstance(node, ast.Subscript):
        place = getattr(node.value, "attr", "") or getattr(node.value, "id", "")
        return f"environ {text(node.slice, {})}" if place == "environ" else ""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
