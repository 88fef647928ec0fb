"""What an ONNX graph counts in floating point: sizes, lengths and positions, of which fp16 holds none beyond 2,048.

Exporters compute floor(length * scale) so, and the angles of rotary positions. In fp16 a length of 3,001 is 3,000.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from onnx import TensorProto

_NUMBERS = frozenset({"Abs", "Add", "Ceil", "Clip", "Div", "Exp", "Floor", "Log", "MatMul", "Max", "Min", "Mod", "Mul"})
_MORE_NUMBERS = frozenset({"Neg", "Pow", "Reciprocal", "Round", "Sqrt", "Sub", "Where"})
_SUMS = frozenset({"CumSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"})
_SHAPES = frozenset({"Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"})
_MORE_SHAPES = frozenset({"Transpose", "Unsqueeze"})
SOURCES = frozenset({"Cast", "Range"})
"""Operators that make floating point numbers of integers."""
ARITHMETIC = SOURCES | _NUMBERS | _MORE_NUMBERS | _SUMS | _SHAPES | _MORE_SHAPES
"""Operators whose result still counts, if all that they read does or is constant."""
ANGLES = frozenset({"Cos", "Sin"})
"""Operators that need every digit of a large number."""


def kept_outputs(
    nodes: Iterable[Any],
    types: Mapping[str, int],
    constants: Collection[str],
    takes_half: Callable[[Any, int], bool],
) -> frozenset[str]:
    """Return the names of the outputs of all nodes that count and must stay in fp32.

    A node counts if what it reads comes from integers by arithmetic alone. It stays in fp32 if what it gives becomes
    an integer, a truth value or an angle, or is read where an operator takes fp32 only. A mask that is added to scores
    does neither. What a matrix makes of integers are scores, and no integer that is made of them needs every digit;
    angles are made by a matrix too. ``nodes``: in the order of computation; ``types``: element types by name;
    ``constants``: names of weights; ``takes_half``: whether a node's input of that index may be fp16.
    """
    made: dict[str, Any] = {}
    scores: set[str] = set()
    kept: set[str] = set()
    needed: list[str] = []
    for node in nodes:
        given, results = (_single(names, types) for names in (node.input, node.output))
        counted = [name for name in given if name in made]
        counts = len(counted) > 0 and all(name in made or name in constants for name in given)
        is_scored = node.op_type == "MatMul" or not scores.isdisjoint(counted)
        if counts and ((_gives_others(node, results) and not is_scored) or node.op_type in ANGLES):
            kept.update(node.output)
            needed += counted
        else:
            needed += [name for index, name in enumerate(node.input) if name in made and not takes_half(node, index)]
        if (counts and node.op_type in ARITHMETIC) or (node.op_type in SOURCES and set(given) <= set(constants)):
            made |= dict.fromkeys(results, node)
            scores.update(results if is_scored else ())
    return frozenset(kept | _origins(needed, made)) - {""}


def _gives_others(node: Any, results: Collection[str]) -> bool:
    """Whether a node gives something else than its results of fp32: an integer or a truth value."""
    return len(results) < len([name for name in node.output if name])


def _origins(needed: Sequence[str], made: Mapping[str, Any]) -> set[str]:
    """Return the outputs of the nodes that give what is needed, and of those that these need."""
    found: set[str] = set()
    left = list(needed)
    while left:
        node = made[left.pop()]
        if found.isdisjoint(node.output):
            found.update(node.output)
            left += [name for name in node.input if name in made]
    return found


def _single(names: Iterable[str], types: Mapping[str, int]) -> list[str]:
    return [name for name in names if types.get(name) == TensorProto.FLOAT]
