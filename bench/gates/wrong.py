"""Wrong variants of a model, by rule: each is a fault that a conversion, a rewrite or a user was seen to make.

A rule yields a variant for each place where it applies; it yields none where it does not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from onnx import TensorProto, helper

from bench.gates.surgery import FLOATS, INTEGERS, Surgery, encoder, sizes
from triton_converters.claim_store.dump import Array
from triton_converters.convert.masks import FP16_LIMIT

SEED = 7
SCALED = 1.05
"""A dropped factor is seldom smaller; 5 % is 26 dB."""
NOISE = 0.05
OVERFLOWING = 0.8
"""Values above this share of the largest one overflow."""
COLOURS = 3
SLICE_OPSET = 10
"""The first in which a slice's ends are inputs."""


@dataclass(frozen=True)
class Known:
    """What the rules must know of real samples."""

    typical: dict[str, Array]
    """One batch of real inputs, by name."""
    inside: Callable[[Any, list[str]], dict[str, Array]]
    """Runs another graph's tensors over real samples."""
    outputs: dict[str, Array]
    """The framework's outputs for the same."""
    lengths: dict[str, dict[int, tuple[int, ...]]]
    """The sizes that an input's open axes have in real samples, the batch left out."""
    batched: bool


Variants = Iterator[tuple[str, Any]]
"""The place of each change, and the graph."""
Rule = Callable[[Any, Known], Variants]
node = helper.make_node


def zeroed(model: Any, known: Known) -> Variants:
    """An output is 0, or an empty text."""
    for name, kind in computed(model):
        if kind.elem_type in FLOATS + INTEGERS:
            variant = Surgery(model)
            true, place = variant.split_output(name)
            variant.insert(place, node("Mul", [true, variant.scalar(0, kind.elem_type)], [name]))
            yield name, variant.model
        elif kind.elem_type == TensorProto.STRING:
            yield name, _reworded(model, name, {}, "")


def scaled(model: Any, known: Known) -> Variants:
    """An output has lost a factor."""
    for name, kind in computed(model):
        if kind.elem_type in FLOATS:
            variant = Surgery(model)
            true, place = variant.split_output(name)
            variant.insert(place, node("Mul", [true, variant.scalar(SCALED, kind.elem_type)], [name]))
            yield name, variant.model


def outputs_swapped(model: Any, known: Known) -> Variants:
    """Two outputs of one shape have each other's names."""
    names = [name for name, _ in computed(model)]
    for one, other in _pairs({name: known.outputs[name] for name in names}):
        variant = Surgery(model)
        trues = {name: variant.rename(name) for name in (one, other)}
        for given, name in ((one, other), (other, one)):
            variant.insert(len(variant.graph.node), node("Identity", [trues[given]], [name]))
        yield f"{one}/{other}", variant.model


def inputs_swapped(model: Any, known: Known) -> Variants:
    """Two inputs of one shape are bound to each other's names."""
    for one, other in _pairs({name: known.typical[name] for name in Surgery(model).inputs()}):
        variant = Surgery(model)
        changed = {name: variant.split_input(name) for name in (one, other)}
        for given, name in ((one, other), (other, one)):
            variant.insert(0, node("Identity", [given], [changed[name]]))
        yield f"{one}/{other}", variant.model


def channel_permuted(model: Any, known: Known) -> Variants:
    """Colours are in another order; of what has none, the first two of the last fixed axis are exchanged."""
    for name, kind in Surgery(model).inputs().items():
        fixed = [(axis, size) for axis, size in enumerate(sizes(kind)) if isinstance(size, int) and size > 1]
        fixed = [each for each in fixed if each[0] or not known.batched]
        if kind.elem_type not in FLOATS or not fixed:
            continue
        axis, size = next((each for each in fixed if each[1] == COLOURS), fixed[-1])
        order = numpy.arange(size)
        order = order[::-1].copy() if size == COLOURS else numpy.concatenate([order[1::-1], order[2:]])
        variant = Surgery(model)
        changed = variant.split_input(name)
        variant.insert(0, node("Gather", [name, variant.weight(order)], [changed], axis=axis))
        yield name, variant.model


def class_off_by_one(model: Any, known: Known) -> Variants:
    """Scores belong to the next class; a class number is one more, and a word the next one."""
    for name, kind in computed(model):
        array, dims = known.outputs[name], sizes(kind)
        has_classes = array.ndim > 1 and isinstance(dims[-1], int) and array.shape[-1] > 1
        if kind.elem_type in INTEGERS:
            variant = Surgery(model)
            true, place = variant.split_output(name)
            variant.insert(place, node("Add", [true, variant.scalar(1, kind.elem_type)], [name]))
            yield name, variant.model
        elif kind.elem_type == TensorProto.STRING:
            found = sorted({str(each) for each in array.ravel()})
            yield name, _reworded(model, name, dict(zip(found, found[1:] + found[:1], strict=True)), found[0])
        elif kind.elem_type in FLOATS and has_classes:
            variant = Surgery(model)
            true, place = variant.split_output(name)
            next_one = variant.weight(numpy.roll(numpy.arange(array.shape[-1]), 1))
            variant.insert(place, node("Gather", [true, next_one], [name], axis=array.ndim - 1))
            yield name, variant.model


def mask_dropped(model: Any, known: Known) -> Variants:
    """The graph takes all that is padded for content."""
    for name, kind in Surgery(model).inputs().items():
        if "mask" not in name:
            continue
        variant = Surgery(model)
        changed, between = variant.split_input(name), variant.name()
        if kind.elem_type == TensorProto.BOOL:
            variant.insert(0, node("Not", [name], [between]), node("Or", [name, between], [changed]))
        else:
            one = variant.scalar(1, kind.elem_type)
            variant.insert(0, node("Sub", [name, name], [between]), node("Add", [between, one], [changed]))
        yield name, variant.model


def batch_frozen(model: Any, known: Known) -> Variants:
    """Every sample of a batch gets the first one's answer, as after tracing with a batch of one."""
    kinds = Surgery(model).inputs()
    if not known.batched or any(kind.elem_type == TensorProto.STRING for kind in kinds.values()):
        return
    variant = Surgery(model)
    first = variant.weight(numpy.array([0]))
    for name in kinds:
        changed, row, shape = variant.split_input(name), variant.name(), variant.name()
        variant.insert(
            0,
            node("Gather", [name, first], [row], axis=0),
            node("Shape", [name], [shape]),
            node("Expand", [row, shape], [changed]),
        )
    yield "batch", variant.model


def length_frozen(model: Any, known: Known) -> Variants:
    """The graph reads no more than the length that it was traced with; what is longer is cut."""
    variant = Surgery(model)
    places = [(name, axis, found) for name, axes in known.lengths.items() for axis, found in axes.items()]
    if not places or variant.opset < SLICE_OPSET:
        return
    for name, axis, lengths in places:
        limits = [variant.weight(numpy.array([each])) for each in (0, lengths[len(lengths) // 2], axis)]
        changed = variant.split_input(name)
        variant.insert(0, node("Slice", [name, *limits], [changed]))
    yield "length", variant.model


def layer_overflows(model: Any, known: Known) -> Variants:
    """A layer in the middle is computed in fp16, whose range its largest values exceed."""
    layers = [each for each in Surgery(model).graph.node if each.op_type in LAYERS and not each.domain]
    if not layers:
        return
    name = layers[len(layers) // 2].output[0]
    values = known.inside(model, [name])[name]
    largest = float(numpy.abs(values).max(initial=0.0))
    if values.dtype != numpy.float32 or not largest:
        return
    variant = Surgery(model)
    factor = FP16_LIMIT / (OVERFLOWING * largest)
    up, down = variant.scalar(factor, TensorProto.FLOAT), variant.scalar(1 / factor, TensorProto.FLOAT)
    large, half, single = variant.name(), variant.name(), variant.name()
    true, place = variant.split_output(name)
    variant.insert(
        place,
        node("Mul", [true, up], [large]),
        node("Cast", [large], [half], to=TensorProto.FLOAT16),
        node("Cast", [half], [single], to=TensorProto.FLOAT),
        node("Mul", [single, down], [name]),
    )
    yield name, variant.model


def wrong_normalisation(model: Any, known: Known) -> Variants:
    """An input is normalised once more, as where both the client and the graph do so."""
    for name, kind in Surgery(model).inputs().items():
        values = known.typical[name].astype(numpy.float64) if kind.elem_type in FLOATS else numpy.zeros(1)
        mean, deviation = float(values.mean()), float(values.std())
        if not deviation:
            continue
        variant = Surgery(model)
        offset, factor = variant.scalar(-mean, kind.elem_type), variant.scalar(1 / deviation, kind.elem_type)
        changed, moved = variant.split_input(name), variant.name()
        variant.insert(0, node("Add", [name, offset], [moved]), node("Mul", [moved, factor], [changed]))
        yield name, variant.model


def layer_of_another_seed(model: Any, known: Known) -> Variants:
    """The weights of a layer in the middle are of the right distribution, and in the wrong places."""
    variant = Surgery(model)
    found = variant.weights((TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8))
    read = [name for each in variant.graph.node if each.op_type in WEIGHTED for name in each.input if name in found]
    if not read:
        return
    name = read[len(read) // 2]
    shuffled = numpy.random.default_rng(SEED).permutation(found[name].ravel())
    variant.set_weight(name, shuffled.reshape(found[name].shape))
    yield name, variant.model


def noise(model: Any, known: Known) -> Variants:
    """An output is off by 5 % of its root mean square in every element."""
    for name, kind in computed(model):
        array = known.outputs[name]
        finite = array[numpy.isfinite(array)].astype(numpy.float64) if kind.elem_type in FLOATS else numpy.zeros(0)
        scale = NOISE * float(numpy.sqrt(numpy.square(finite).mean())) if finite.size else 0.0
        if not scale:
            continue
        variant = Surgery(model)
        (true, place), drawn = variant.split_output(name), variant.name()
        variant.insert(
            place,
            node("RandomNormalLike", [true], [drawn], scale=scale, seed=float(SEED)),
            node("Add", [true, drawn], [name]),
        )
        yield name, variant.model


LAYERS = frozenset({"Conv", "MatMul", "Gemm", "GRU", "LSTM", "ConvTranspose"})
WEIGHTED = LAYERS | {"QLinearConv", "MatMulInteger", "ConvInteger", "DynamicQuantizeLSTM"}
WRONG: dict[str, Rule] = {
    "output zeroed": zeroed,
    "output scaled": scaled,
    "outputs swapped": outputs_swapped,
    "inputs swapped": inputs_swapped,
    "channel permuted": channel_permuted,
    "class off by one": class_off_by_one,
    "mask dropped": mask_dropped,
    "batch frozen": batch_frozen,
    "length frozen": length_frozen,
    "layer overflows in fp16": layer_overflows,
    "wrong normalisation": wrong_normalisation,
    "layer of another seed": layer_of_another_seed,
    "noise of 5 %": noise,
}


def computed(model: Any) -> list[tuple[str, Any]]:
    """Return the name and the type of every output that a node computes."""
    surgery = Surgery(model)
    made = {name for each in surgery.graph.node for name in each.output}
    return [(name, kind) for name, kind in surgery.outputs().items() if name in made]


def _reworded(model: Any, name: str, words: dict[str, str], otherwise: str) -> Any:
    """Return the graph with other words in an output of text; ``otherwise``: in place of those that are not listed."""
    variant = Surgery(model)
    true, place = variant.split_output(name)
    keys, values = list(words) or [""], list(words.values()) or [otherwise]
    variant.insert(place, encoder([true], [name], keys_strings=keys, values_strings=values, default_string=otherwise))
    return variant.model


def _pairs(arrays: dict[str, Array]) -> Iterator[tuple[str, str]]:
    """Yield the names of the first two arrays of each type and shape."""
    by_shape: dict[tuple[Any, ...], list[str]] = {}
    for name, array in arrays.items():
        by_shape.setdefault((array.dtype, *array.shape), []).append(name)
    for group in by_shape.values():
        if len(group) > 1:
            yield group[0], group[1]
