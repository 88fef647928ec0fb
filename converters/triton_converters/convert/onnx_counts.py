"""What an ONNX graph counts in floating point: sizes, positions and classes, of which fp16 holds few beyond 2,048.

Exporters compute floor(length * scale) so, and the angles of rotary positions. In fp16 a length of 3,001 is 3,000, and
so is the number of a class, or of a row of a table that an input in floating point chooses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    is an answer of the model. A mask that is added to scores does none of these. What a matrix makes of integers are
    scores: neither integers that are made of them need every digit, nor they as answers; angles are made by a matrix
    too. What is computed of the inputs is an answer like any other, unless it is the numbers themselves. ``nodes``: in
    the order of computation; ``types``: element types by name; ``constants``: names of weights; ``takes_half``: whether
    a node's input of that index may be fp16.
    """
    made: dict[str, Any] = dict.fromkeys(_single(interface.inputs, types))
    computed: set[str] = set()
    """The part of what is made that, as an answer, may be in fp16 like any other."""
    given_by_clients = set(made)
    kept: set[str] = set()
    needed: list[str] = []
    for node in nodes:
        given, results = (_single(names, types) for names in (node.input, node.output))
        counted = made.keys() & set(given)
        counts = len(counted) > 0 and all(name in made or name in constants for name in given)
        by_clients = not given_by_clients.isdisjoint(counted)
        is_scored = not by_clients and (node.op_type == "MatMul" or not computed.isdisjoint(counted))
        if counts and ((_gives_others(node, types) and not is_scored) or node.op_type in ANGLES):
            kept.update(node.output)
            needed += counted
        else:
            needed += _read_in_fp32(node, made, takes_half)
        is_source = node.op_type in SOURCES and set(given) <= set(constants)
        if is_source or (counts and _gives_counts(node, by_clients)):
            made |= dict.fromkeys(results, node)
            given_by_clients.update(results if by_clients else ())
            moved = node.op_type in MOVING and computed.isdisjoint(counted)
            computed.update(results if is_scored or (by_clients and not moved) else ())
    needed += _answers(interface, made, computed)
    return frozenset(kept | _origins(needed, made)) - {""}


def _gives_counts(node: Any, by_clients: bool) -> bool:
    """Whether a node makes counts of counts; a layer that reads the model's inputs makes features of them."""
    return node.op_type in ARITHMETIC and not (by_clients and node.op_type == "MatMul")


def _answers(interface: Interface, made: Mapping[str, Any], computed: Collection[str]) -> list[str]:
    return [name for name in interface.outputs if made.get(name) is not None and name not in computed]


def _read_in_fp32(node: Any, made: Collection[str], takes_half: Callable[[Any, int], bool]) -> list[str]:
    return [name for index, name in enumerate(node.input) if name in made and not takes_half(node, index)]


def _gives_others(node: Any, types: Mapping[str, int]) -> bool:
    """Whether a node gives an integer or a truth value. What is no tensor, such as a list of some, has no type here."""
    same = (TensorProto.FLOAT, TensorProto.UNDEFINED)
    return any(types.get(name) not in same for name in node.output if name)


def _origins(needed: Sequence[str], made: Mapping[str, Any]) -> set[str]:
    """Return the outputs of the nodes that give what is needed, and of those that these need, up to inputs."""
    found: set[str] = set()
    left = list(needed)
    while left:
        node = made[left.pop()]
        if node is not None and found.isdisjoint(node.output):
            found.update(node.output)
            left += [name for name in node.input if name in made]
    return found


def _single(names: Iterable[str], types: Mapping[str, int]) -> list[str]:
    return [name for name in names if types.get(name) == TensorProto.FLOAT]
