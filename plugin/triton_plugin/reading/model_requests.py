"""The requests that a Python step makes to other models, as its syntax tree shows them. Pure."""

import ast
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from triton_plugin.reading.constants import last_name

REQUEST = "InferenceRequest"
"""The class of a request to another model, in Triton's Python contract."""
ENTRY = "execute"
"""The method that Triton calls."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NESTED = 2
"""Loops around what is done for each sample: one goes through the requests, one through the samples of a request."""
Use = tuple[str, str, int]
"""The function that uses a name, that name, and the number of loops around it there."""


@dataclass(frozen=True)
class ModelRequest:
    """A request to another model."""

    model: str
    """Empty: the name is computed."""
    is_nested: bool
    """Whether the request is in a loop within a loop, on every way from ``execute`` that the file shows."""


def requests(module: ast.Module) -> list[ModelRequest]:
    """Return the requests that the file makes."""
    # Most files make none, which a plain walk finds in a fifth of the time.
    if not any(map(_is_request, ast.walk(module))):
        return []
    found: list[tuple[str, str, int]] = []
    uses: list[Use] = []
    functions = {""}
    # A file may be nested deeper than Python calls.
    pending: list[tuple[ast.AST, str, int]] = [(module, "", 0)]
    while pending:
        node, function, loops = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function, loops = node.name, 0
            functions.add(function)
        elif _is_request(node):
            found.append((_model(node), function, loops))
        elif name := last_name(node):
            uses.append((function, name, loops))
        pending += ((part, function, loops + more) for part, more in _parts(node))
    around = _around(functions, [each for each in uses if each[1] in functions])
    return [ModelRequest(model, around.get(function, 0) + loops >= NESTED) for model, function, loops in found]


def _around(functions: set[str], uses: list[Use]) -> dict[str, int]:
    """Return in how many loops each function is called at least, counted up to ``NESTED``."""
    inside: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for function, used, loops in uses:
        inside[function].add((used, loops))
    found = dict.fromkeys({"", ENTRY} | functions - {used for _, used, _ in uses}, 0)
    pending = deque(found)
    while pending:
        function = pending.popleft()
        for used, loops in inside[function]:
            total = min(found[function] + loops, NESTED)
            if used not in found or total < found[used]:
                found[used] = total
                pending.append(used)
    return found


def _parts(node: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Yield the parts of a node, each with the number of loops that the node puts around it."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield from ((each, 1) for each in node.body)
        yield from ((each, 0) for each in (node.iter, *node.orelse))
    elif isinstance(node, COMPREHENSIONS):
        for number, each in enumerate(node.generators):
            yield each.iter, number
            yield from ((condition, number + 1) for condition in each.ifs)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        yield from ((each, len(node.generators)) for each in elements)
    else:
        yield from ((each, 0) for each in ast.iter_child_nodes(node))


def _is_request(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and last_name(node.func) == REQUEST


def _model(request: ast.Call) -> str:
    """Return the name of the model that a request is made for; empty: it is no text in the code."""
    name = next((each.value for each in request.keywords if each.arg == "model_name"), None)
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
