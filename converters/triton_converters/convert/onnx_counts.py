"""What an ONNX graph counts in floating point: sizes, positions and classes, of which fp16 holds few beyond 2,048.

Exporters compute floor(length * scale) so, and the angles of rotary positions. In fp16 a length of 3,001 is 3,000, and
so is the number of a class, or of a row of a table that an input in floating point chooses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from onnx import TensorProto

_NUMBERS = frozenset({"Abs", "Add", "Ceil", "Clip", "Div", "Exp", "Floor", "Log", "MatMul", "Max", "Min", "Mod", "Mul"})
_MORE_NUMBERS = frozenset({"Neg", "Pow", "Reciprocal", "Round", "Sqrt", "Sub", "Where"})
_SUMS = frozenset({"CumSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"})
_SHAPES = frozenset({"Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"})
MOVING = _SHAPES | {"Flatten", "Transpose", "Unsqueeze"}
"""Operators whose result has the numbers that they read."""
SOURCES = frozenset({"Cast", "Range"})
"""Operators that make floating point numbers of integers."""
ARITHMETIC = SOURCES | _NUMBERS | _MORE_NUMBERS | _SUMS | MOVING
"""Operators whose result still counts, if all that they read does or is constant."""
ANGLES = frozenset({"Cos", "Sin"})
"""Operators that need every digit of a large number."""


@dataclass(frozen=True)
class Interface:
    """The names of a model's own tensors."""

    inputs: Collection[str]
    outputs: Collection[str]


class Count(Enum):
    """Where a floating point number that counts comes from."""

    GIVEN = auto()
    """A client's own number."""
    COMPUTED = auto()
    """What arithmetic makes of clients' numbers."""
    WHOLE = auto()
    """What arithmetic makes of integers."""
    SCORE = auto()
    """What a matrix makes of integers."""


def kept_outputs(
    nodes: Iterable[Any],
    types: Mapping[str, int],
    constants: Collection[str],
    interface: Interface,
    takes_half: Callable[[Any, int], bool],
) -> frozenset[str]:
    """Return the names of the outputs of all nodes that count and must stay in fp32.

    A node counts if what it reads comes from integers, or from the model's inputs, by arithmetic alone. It stays in
    fp32 if what it gives becomes an integer, a truth value or an angle, is read where an operator takes fp32 only, or
    is an answer of the model. A mask that is added to scores does none of these. Neither integers that are made of
    scores need every digit, nor scores as answers; angles are made by a matrix too. What is computed of the inputs is
    an answer like any other. ``nodes``: in the order of computation; ``types``: element types by name; ``constants``:
    names of weights; ``takes_half``: whether a node's input of that index may be fp16.
    """
    counts = dict.fromkeys(_single(interface.inputs, types), Count.GIVEN)
    makers: dict[str, Any] = {}
    kept: set[str] = set()
    needed: list[str] = []
    for node in nodes:
        given = _single(node.input, types)
        counted = counts.keys() & set(given)
        count = _count(node.op_type, {counts[name] for name in counted})
        is_counting = bool(counted) and all(name in counts or name in constants for name in given)
        if is_counting and _needs_digits(node, count, types):
            kept.update(node.output)
            needed += counted
        else:
            needed += _read_in_fp32(node, counts, takes_half)
        is_source = node.op_type in SOURCES and set(given) <= set(constants)
        if is_source or (is_counting and _gives_counts(node.op_type, count)):
            for name in _single(node.output, types):
                counts[name] = count
                makers[name] = node
    needed += [name for name in interface.outputs if name in makers and counts[name] in (Count.GIVEN, Count.WHOLE)]
    return frozenset(kept | _origins(needed, makers)) - {""}


def _count(operator: str, read: Collection[Count]) -> Count:
    """Return what an operator makes of counts; of none, which is of integers or of constants, WHOLE."""
    if Count.GIVEN in read or Count.COMPUTED in read:
        is_moved = operator in MOVING and Count.COMPUTED not in read and Count.SCORE not in read
        return Count.GIVEN if is_moved else Count.COMPUTED
    return Count.SCORE if operator == "MatMul" or Count.SCORE in read else Count.WHOLE


def _needs_digits(node: Any, count: Count, types: Mapping[str, int]) -> bool:
    return node.op_type in ANGLES or (count is not Count.SCORE and _gives_others(node, types))


def _gives_counts(operator: str, count: Count) -> bool:
    """Whether an operator makes counts of counts; a layer that reads the model's inputs makes features of them."""
    return operator in ARITHMETIC and not (operator == "MatMul" and count is Count.COMPUTED)


def _read_in_fp32(node: Any, counts: Collection[str], takes_half: Callable[[Any, int], bool]) -> list[str]:
    return [name for index, name in enumerate(node.input) if name in counts and not takes_half(node, index)]


def _gives_others(node: Any, types: Mapping[str, int]) -> bool:
    """Whether a node gives an integer or a truth value. What is no tensor, such as a list of some, has no type here."""
    same = (TensorProto.FLOAT, TensorProto.UNDEFINED)
    return any(types.get(name) not in same for name in node.output if name)


def _origins(needed: Sequence[str], makers: Mapping[str, Any]) -> set[str]:
    """Return the outputs of the nodes that give what is needed, and of those that these need, up to inputs."""
    found: set[str] = set()
    left = list(needed)
    while left:
        node = makers.get(left.pop())
        if node is not None and found.isdisjoint(node.output):
            found.update(node.output)
            left += node.input
    return found


def _single(names: Iterable[str], types: Mapping[str, int]) -> list[str]:
    return [name for name in names if types.get(name) == TensorProto.FLOAT]
