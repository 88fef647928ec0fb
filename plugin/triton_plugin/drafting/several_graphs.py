"""What to do with a folder of several ONNX graphs, which may be the steps of an ensemble."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from triton_converters.contract.formats import ENSEMBLE
from triton_converters.contract.text import printable, shortened
from triton_converters.found.tensors import Declared, Graph, of_onnx
from triton_operator.api.ensemble import MODELS

MOST_TENSORS = 8
"""The most inputs, or outputs, that are shown of a graph."""
LONGEST_NAME = 60
"""The longest name of a tensor that is shown whole, in bytes."""


def advice(folder: Path, paths: Sequence[str]) -> str:
    """Return how to serve the graphs at these paths below the folder together; empty: they are not all graphs.

    It shows what each declares and which input may come from which graph: the author alone knows whether it does.
    Raises OSError.
    """
    if len(paths) > MODELS:
        return ""
    graphs = {path: graph for path in paths if (graph := of_onnx(folder / path)) is not None}
    if len(graphs) < len(paths):
        return ""
    lines = "".join(f"\n  {path}: {_line(path, graphs)}" for path in graphs)
    return (
        f"\nTo serve all of them as one, write an object with each in spec.models, and connect them in spec.{ENSEMBLE},"
        f" one step each (docs/ensembles.md). They declare:{lines}"
    )


def _line(path: str, graphs: Mapping[str, Graph]) -> str:
    inputs = [f"{_words(each)}{_origin(each, path, graphs)}" for each in graphs[path].inputs]
    return f"{_listed(inputs)} -> {_listed(list(map(_words, graphs[path].outputs)))}"


def _origin(tensor: Declared, path: str, graphs: Mapping[str, Graph]) -> str:
    """Return which other graph an input may come from; empty: none, or any of several."""
    givers = [
        other
        for other, graph in graphs.items()
        if other != path and any(tensor.fits(output) for output in graph.outputs)
    ]
    return f" (as from {givers[0]})" if len(givers) == 1 else ""


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MOST_TENSORS} more" if len(texts) > MOST_TENSORS else ""
    return ", ".join(islice(texts, MOST_TENSORS)) + more


def _words(tensor: Declared) -> str:
    dims = "" if tensor.dims is None else str(list(tensor.dims)).replace(" ", "")
    name = shortened(" ".join(printable(tensor.name).split()), LONGEST_NAME)
    return f"{name} {tensor.data_type or 'of an unknown type'}{dims}"
