"""The literal paths that a Python file opens, or joins to others, as its syntax tree shows them. Pure."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TypeGuard

from triton_plugin.reading.constants import Constants, constants, last_name, text

_PLACE = re.compile(r"/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?")
"""Matches an absolute path."""
Path = tuple[str, int]
"""A path, and its line."""
PATHS = ("Path", "PurePath", "PosixPath", "PurePosixPath")
"""The classes of ``pathlib`` that take a path."""
MAKING = ("makedirs", "mkdir")
"""The functions that make a directory."""
LONGEST = 512
"""Most characters of a path that is put together: a file may hold very many."""
_NONE: Constants = {}
WRITING = frozenset("wax")
"""What a mode of ``open`` has if the file need not be there."""


def opened(module: ast.Module) -> Iterator[Path]:
    """Yield the paths that are handed to ``open``, to read."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open" and node.args:
            mode = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "mode")]
            if (path := text(node.args[0], {})) and not WRITING & set("".join(text(each, {}) for each in mode)):
                yield path, node.lineno


def absolute(module: ast.Module) -> Iterator[str]:
    """Yield the absolute paths that are texts, or put together from texts; the end of another path is none."""
    added = {id(node.right) for node in ast.walk(module) if isinstance(node, ast.BinOp)}
    added |= {id(each) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for each in node.values[1:]}
    for node in ast.walk(module):
        if isinstance(node, ast.expr) and id(node) not in added and _PLACE.fullmatch(text(node, {})):
            yield text(node, {})
    yield from filter(_PLACE.fullmatch, _put_together(module, constants(module, _plain)))


def created_directories(module: ast.Module) -> Iterator[str]:
    """Yield the absolute paths of the directories that it makes, by ``os`` or ``pathlib``."""
    values = constants(module, _plain)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and last_name(node.func) in MAKING:
            whose = getattr(node.func, "value", None)
            path = _plain(whose, values) or (_plain(node.args[0], values) if node.args else "")
            if _PLACE.fullmatch(path):
                yield path.rstrip("/")


def _plain(node: ast.AST | None, values: Constants = _NONE) -> str:
    """Return a text, or that of ``Path("text")``, also by its name; empty: it is neither."""
    if isinstance(node, ast.Call) and last_name(node.func) in PATHS and len(node.args) == 1:
        return text(node.args[0], values)
    return text(node, values)


def _put_together(module: ast.Module, values: Constants) -> Iterator[str]:
    """Yield what joins, divisions, sums and f-strings make of texts alone."""
    begun = {id(node.left) for node in ast.walk(module) if _is_division(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            is_plain = all(getattr(each, "conversion", -1) == -1 for each in node.values)
            parts = (
                getattr(each, "value", None) if isinstance(each, ast.FormattedValue) else each for each in node.values
            )
            yield "".join(_texts(parts if is_plain else (), values))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield "".join(_texts((node.left, node.right), values))
        elif _is_join(node):
            yield str(PurePosixPath(*_texts(node.args, values)))
        elif _is_division(node) and id(node) not in begun:
            yield str(PurePosixPath(*reversed(_texts(_divided(node), values))))


def _texts(parts: Iterable[ast.AST | None], values: Constants) -> list[str]:
    """Return the texts of all parts; empty: one is none, or they are too long."""
    found: list[str] = []
    length = 0
    for each in parts:
        found.append(_plain(each, values))
        length += len(found[-1])
        if not found[-1] or length > LONGEST:
            return []
    return found


def joined(module: ast.Module) -> Iterator[Path]:
    """Yield the literal ends of ``os.path.join(..., "a", "b.txt")``, ``... / "a" / "b.txt"``, and of sums."""
    # Each division is looked at once: a file may hold thousands in a row.
    begun = {id(node.left) for node in ast.walk(module) if _is_division(node) and text(node.right, {})}
    for node in ast.walk(module):
        parts: Iterable[ast.expr] = ()
        if _is_join(node):
            parts = reversed(node.args)
        elif _is_division(node) and id(node) not in begun:
            parts = _divided(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _PLACE.fullmatch(text(node.right, {})):
            yield text(node.right, {}).strip("/"), node.lineno
        if isinstance(node, ast.expr) and (end := _end(parts)):
            yield str(PurePosixPath(*reversed(end))), node.lineno


def _is_join(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is ``os.path.join(...)``: another method of that name joins words."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and isinstance(node.func.value, ast.Attribute | ast.Name)
        and len(node.args) > 1
    )


def _is_division(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _divided(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of ``a / b / c``, the last one first."""
    while _is_division(node):
        yield node.right
        node = node.left
    yield node


def _end(parts: Iterable[ast.expr]) -> list[str]:
    """Return the texts before the first part that is none; empty: all are texts."""
    end: list[str] = []
    for each in parts:
        if not (found := text(each, {})):
            return end
        end.append(found)
    return []
