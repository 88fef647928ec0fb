"""The order of computation of a graph's nodes."""

import heapq
from typing import Any

from triton_converters.graph.walk import read_by


def sort(graph: Any) -> bool:
    """Put a node that reads what another one gives behind it; return whether anything moved.

    Nodes that may stay where they are do. A graph that goes round in a circle stays as it is. ``graph``: an
    ``onnx.GraphProto``, whose bodies are not sorted.
    """
    nodes = list(graph.node)
    givers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    awaited = [{givers[name] for name in read_by(node) if name in givers} for node in nodes]
    if all(giver < number for number, givers_of in enumerate(awaited) for giver in givers_of):
        return False
    readers: dict[int, list[int]] = {}
    for number, givers_of in enumerate(awaited):
        for giver in givers_of:
            readers.setdefault(giver, []).append(number)
    ready = [number for number, givers_of in enumerate(awaited) if not givers_of]
    order: list[Any] = []
    while ready:
        number = heapq.heappop(ready)
        order.append(nodes[number])
        for reader in readers.get(number, ()):
            awaited[reader].discard(number)
            if not awaited[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        return False
    del graph.node[:]
    graph.node.extend(order)
    return True
