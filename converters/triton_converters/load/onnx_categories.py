"""Which words or numbers the columns of a table hold, as far as the graph tells: those that it looks up.

An encoder of categories has a list of them. Any other word is none of these, so that an answer tells nothing of the
column, or the graph refuses it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from onnx import TensorProto, numpy_helper

from triton_converters.load.onnx_columns import Columns, constants, kept, readers, width, widths_by

MOST = 256
"""Categories of a column that are kept."""
PHRASE = 5
"""Words of a text, for graphs that take texts apart."""
OTHER = "other"
"""A word that is no category, for graphs that compare with some words."""
Category = str | float
Categories = tuple[Category, ...]
"""The categories of one column; none: nothing is known."""

_WORDS = ("cats_strings", "keys_strings", "classes_strings", "pool_strings")
_NUMBERS = ("cats_int64s", "keys_int64s", "keys_floats", "pool_int64s")
_LISTS = {
    "CategoryMapper": _WORDS[:1] + _NUMBERS[:1],
    "LabelEncoder": ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor", "classes_strings"),
    "OneHotEncoder": _WORDS[:1] + _NUMBERS[:1],
    "TfIdfVectorizer": ("pool_strings", "pool_int64s"),
}
"""The attributes that list what an operator looks up."""
_SPLITTING = frozenset({"RegexSplitWithOffsets", "StringSplit", "Tokenizer"})
_SAME_TEXT = _SPLITTING | {"StringNormalizer"}
"""Operators whose output has the words of their input."""
_SAME_COLUMN = _SAME_TEXT | {"Flatten", "Reshape", "Squeeze", "Unsqueeze"}
"""Operators that hand a single column on, whatever its shape."""


def categories(graph: Any) -> Mapping[str, tuple[Categories, ...]]:
    """Return the categories of each column of the inputs that are tables; inputs of which none is known are left out.

    An input of one axis is one column. ``graph``: a GraphProto; its nodes are in the order of computation.
    """
    known = constants(graph)
    widths = widths_by(_width, graph)
    found: dict[str, list[dict[Category, None]]] = {}
    splits = any(node.op_type in _SPLITTING for node in graph.node)
    for node, origins in readers(graph, widths, known, _handed_on):
        looked_up = dict.fromkeys(_looked_up(node, known, splits))
        for source, place in (column for name in node.input for column in origins.get(name, ()) if looked_up):
            found.setdefault(source, [{} for _ in range(widths[source])])[place].update(looked_up)
    return {name: tuple(tuple(each) for each in whole) for name, whole in found.items()}


def _width(value: Any) -> int:
    """Return the number of columns of a graph's input; 0: it is no table."""
    return 1 if len(value.type.tensor_type.shape.dim) == 1 else width(value)


def _handed_on(node: Any, origins: Mapping[str, Columns], known: Mapping[str, Any]) -> Columns | None:
    """Return the columns that the node hands on as they are; None: it does something else with them."""
    columns = origins.get(node.input[0], []) if node.input else []
    if node.op_type in _SAME_TEXT or (node.op_type in _SAME_COLUMN and len(columns) == 1):
        return columns
    return kept(node, origins, known)


def _looked_up(node: Any, known: Mapping[str, Any], splits: bool) -> Iterator[Category]:
    """Yield what the node looks up; ``splits``: whether the graph takes texts apart."""
    words: list[Category] = []
    for attribute in node.attribute:
        if attribute.name in _LISTS.get(node.op_type, ()):
            words += [each.decode(errors="replace") for each in attribute.strings]
            words += [*attribute.ints, *attribute.floats]
            words += _elements(attribute.t) if attribute.HasField("t") else []
    if node.op_type == "Equal":
        given = [known[name] for name in node.input if name in known and known[name].data_type == TensorProto.STRING]
        words = [word for each in given for word in (*_elements(each), OTHER)]
    words = words[:MOST]
    yield from words
    if splits and node.op_type == "TfIdfVectorizer":
        yield from (" ".join(map(str, words[start : start + PHRASE])) for start in range(len(words)))


def _elements(tensor: Any) -> list[Category]:
    found = numpy_helper.to_array(tensor).ravel()[:MOST].tolist()
    return [each.decode(errors="replace") if isinstance(each, bytes) else each for each in found]
