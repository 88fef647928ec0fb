"""The names of the bodies of control flow: ONNX lets two bodies that do not see each other use the same ones."""

from collections.abc import Mapping
from typing import Any

from triton_converters.graph.walk import UnusedNames, bodies


def separate(graph: Any, names: UnusedNames) -> None:
    """Give what a body defines another name if any other graph of the model defines that name too.

    ``graph``: an ``onnx.GraphProto``, changed in place; ``names``: all names of the model.
    """
    _separate(graph, names, _defined(graph))


def _separate(graph: Any, names: UnusedNames, taken: set[str]) -> None:
    """Separate the bodies within a graph; ``taken``: what was defined so far, to which they are added."""
    for node in graph.node:
        for body in bodies(node):
            shared = _defined(body) & taken
            rename(body, {name: names.unused(name) for name in shared})
            taken |= _defined(body)
            _separate(body, names, taken)


def _defined(graph: Any) -> set[str]:
    """Return the names that a graph itself defines: inputs, weights, and what its nodes give."""
    given = {value.name for values in (graph.input, graph.initializer) for value in values}
    sparse = {each.values.name for each in graph.sparse_initializer}
    return {*given, *sparse, *(name for node in graph.node for name in node.output)} - {""}


def rename(graph: Any, changed: Mapping[str, str]) -> None:
    """Rename tensors in a graph and in all bodies within it, where these define none of that name."""
    if not changed:
        return
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        for value in values:
            value.name = changed.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = changed.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = changed.get(name, name)
        for body in bodies(node):
            own = _defined(body)
            rename(body, {name: new for name, new in changed.items() if name not in own})
