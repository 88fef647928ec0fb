"""The names that the user gave an exported graph's inputs and outputs, apart from the graph's own names. Pure.

An exporter that is told such a name may give it to another tensor too: Dynamo's calls what an embedding gives
``embedding``. So it is told names that nobody gives.
"""

from collections.abc import Sequence
from typing import Any

from triton_converters.graph.scopes import rename
from triton_converters.graph.walk import UnusedNames, names


def stand_ins(kind: str, given: Sequence[str]) -> list[str]:
    """Return as many names as there are given ones; ``kind``: ``input`` or ``output``."""
    return [f"triton_operator_{kind}_{number}" for number in range(len(given))]


def restore(graph: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Give the graph's inputs and outputs the given names in place of their stand-ins, and its own tensors others."""
    given = [*inputs, *outputs]
    own = names(graph)
    unused = UnusedNames(graph)
    for name in given:
        unused.unused(name)
    rename(graph, {name: unused.unused(name) for name in given if name in own})
    rename(graph, dict(zip([*stand_ins("input", inputs), *stand_ins("output", outputs)], given, strict=True)))
