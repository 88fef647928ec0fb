"""The graphs and names of an ONNX model."""

from collections.abc import Iterator
from typing import Any


def graphs(graph: Any) -> Iterator[Any]:
    """Yield all bodies of control flow, innermost first, then the graph: rewriting a graph's nodes copies bodies."""
    for node in graph.node:
        for inner in bodies(node):
            yield from graphs(inner)
    yield graph


def bodies(node: Any) -> list[Any]:
    """Return the graphs that a node of control flow holds."""
    return [
        inner
        for attribute in node.attribute
        for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]


def nodes(model: Any) -> Iterator[Any]:
    """Yield the nodes of a model, those in bodies of control flow and in functions included."""
    return (node for whole in (model.graph, *model.functions) for graph in graphs(whole) for node in graph.node)


def read_by(node: Any) -> set[str]:
    """Return the names that a node reads, those that its bodies read included."""
    inside = (name for body in bodies(node) for each in body.node for name in read_by(each))
    returned = (value.name for body in bodies(node) for value in body.output)
    return {*node.input, *inside, *returned} - {""}


def names(graph: Any) -> set[str]:
    """Return the names of all tensors of a model, those of its bodies included."""
    found: set[str] = set()
    for each in graphs(graph):
        for values in (each.initializer, each.input, each.output):
            found |= {value.name for value in values}
        found |= {sparse.values.name for sparse in each.sparse_initializer}
        found |= {name for node in each.node for name in (*node.input, *node.output)}
    return found - {""}


class UnusedNames:
    """The names of all tensors of a model, to which more may be added."""

    def __init__(self, graph: Any) -> None:
        self._taken = {*names(graph), ""}

    def unused(self, name: str) -> str:
        """Return the name, or a longer one if it is taken; from now on it is."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
