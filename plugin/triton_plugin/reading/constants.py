"""The names in a Python file, and the texts that it gives to them, as its syntax tree shows them. Pure."""

import ast
from collections.abc import Callable, Mapping

Constants = Mapping[str, str]
"""The names that a file gives to one text alone, each with the text."""


def constants(module: ast.Module, read: Callable[[ast.AST | None], str] | None = None) -> Constants:
    """Return the names that the file gives to a text, and to nothing else; variables of the environment among them.

    ``read`` returns the text of a value; None: only a literal is one.
    """
    found: dict[str, set[str]] = {}
    for node in ast.walk(module):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for each in targets:
            if name := _name(each):
                found.setdefault(name, set()).add(read(value) if read else text(value, {}))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def text(node: ast.AST | None, known: Constants) -> str:
    """Return a text, or that of a name; empty: it is none, or not known."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return known.get(_name(node), "")


def last_name(node: ast.AST) -> str:
    """Return a name, or the name that follows a dot; empty: it is something else."""
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _name(node: ast.AST | None) -> str:
    """Return the name of a variable, of a field such as ``self.name``, or of ``os.environ["NAME"]``; empty: another."""
    if isinstance(node, ast.Subscript):
        return f"environ {text(node.slice, {})}" if last_name(node.value) == "environ" else ""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
