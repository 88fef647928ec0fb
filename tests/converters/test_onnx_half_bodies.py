"""The bodies of If, Loop and Scan in fp16: what they share with other graphs, and sequences that go through them."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.converters.test_onnx_precision import run
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import ConversionWarning

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Feeds = list[dict[str, Any]]
Case = tuple[Any, Feeds]
node = helper.make_node
X = numpy.array([1, 2, 3], numpy.float32)


def value(name: str, kind: int = FLOAT, shape: Sequence[Any] = ("n",)) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def sequence(name: str) -> Any:
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


def weight(name: str, values: Any, kind: Any = numpy.float32) -> Any:
    return numpy_helper.from_array(numpy.asarray(values, kind), name)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: Sequence[Any] = ()) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def chosen(then: Any, other: Any, x: Any = X, shape: Sequence[Any] = ("n",), after: Sequence[Any] = ()) -> Case:
    """A model that computes one of two bodies; ``after``: the nodes that follow, the last of which gives y."""
    nodes = [node("If", ["f"], ["chosen" if after else "y"], then_branch=then, else_branch=other), *after]
    inputs = [value("f", BOOL, ()), value("x", shape=shape)]
    return model_of(nodes, inputs, [value("y", shape=shape)]), [{"f": numpy.array(f), "x": x} for f in (True, False)]


def repeated(nodes: list[Any], state: Callable[[str], Any], first: Any, after: Sequence[Any]) -> Case:
    """A model that computes a body three times: from ``s`` to ``s2``, and gives the last one as ``last``."""
    body = helper.make_graph(
        [*nodes, node("Identity", ["c"], ["c2"])],
        "body",
        [value("i", INT64, ()), value("c", BOOL, ()), state("s")],
        [value("c2", BOOL, ()), state("s2")],
    )
    loop = node("Loop", ["three", "", "s0"], ["last"], body=body)
    weights = [weight("w", [0.5, 0.25, 2]), weight("three", 3, numpy.int64)]
    return model_of([first, loop, *after], [value("x")], [value("y")], weights), [{"x": X}]


def of_one_name_for_two_types() -> Case:
    """PyTorch's exporter counts the names of each branch from 1."""
    then = helper.make_graph(
        [node("Mul", ["x", "k"], ["t"]), node("Identity", ["t"], ["r"])], "then", [], [value("r")], [weight("k", 2.0)]
    )
    other = helper.make_graph(
        [node("HannWindow", ["k"], ["t"]), node("Add", ["x", "t"], ["r"])],
        "else", [], [value("r")], [weight("k", 3, numpy.int64)],
    )  # fmt: skip
    return chosen(then, other)


def of_one_name_for_two_weights() -> Case:
    """Resize has no fp16 for its scales, which keep their digits."""
    shape = [1, 1, 1, "k"]
    bodies = [
        helper.make_graph(
            [node("Resize", ["x", "", "scales"], ["r"], mode="nearest")],
            "body", [], [value("r", shape=shape)], [weight("scales", [1, 1, 1, factor])],
        )
        for factor in (1.7, 3)
    ]  # fmt: skip
    return chosen(bodies[0], bodies[1], numpy.ones((1, 1, 1, 10), numpy.float32), shape)


def of_one_name_below_another() -> Case:
    """A body in a body has the names of a body elsewhere."""
    inner = [
        helper.make_graph([node("Mul", ["x", "k"], ["r"])], "inner", [], [value("r")], [weight("k", factor)])
        for factor in (2.0, 4.0)
    ]
    nested = node("If", ["f"], ["t"], then_branch=inner[0], else_branch=inner[1])
    then = helper.make_graph([nested, node("Neg", ["t"], ["r"])], "then", [], [value("r")])
    count = [node("Shape", ["x"], ["t"]), node("Cast", ["t"], ["k"], to=FLOAT), node("Mul", ["k", "x"], ["r"])]
    return chosen(then, helper.make_graph(count, "else", [], [value("r")]))


def of_a_sequence_that_grows() -> Case:
    nodes = [node("Mul", ["x", "w"], ["a"]), node("SequenceInsert", ["s", "a"], ["s2"])]
    joined = [node("ConcatFromSequence", ["last"], ["y"], axis=0)]
    return repeated(nodes, sequence, node("SequenceEmpty", [], ["s0"]), joined)


def of_a_sequence_that_is_given() -> Case:
    nodes = [node("Mul", ["x", "w"], ["a"]), node("SequenceInsert", ["s", "a"], ["s2"])]
    joined = [node("ConcatFromSequence", ["last"], ["y"], axis=0)]
    return repeated(nodes, sequence, node("SequenceConstruct", ["x"], ["s0"]), joined)


def of_one_of_two_sequences() -> Case:
    then = helper.make_graph([node("SequenceConstruct", ["x", "x"], ["q"])], "then", [], [sequence("q")])
    made = [node("Neg", ["x"], ["m"]), node("SequenceConstruct", ["m"], ["r"])]
    joined = [node("ConcatFromSequence", ["chosen"], ["y"], axis=0)]
    return chosen(then, helper.make_graph(made, "else", [], [sequence("r")]), after=joined)


def of_a_state_that_stays_in_fp32() -> Case:
    nodes = [node("Add", ["s", "w"], ["a"]), node("MeanVarianceNormalization", ["a"], ["s2"], axes=[0])]
    return repeated(nodes, value, node("Neg", ["x"], ["s0"]), [node("Neg", ["last"], ["y"])])


CASES = {
    "one name, two types": of_one_name_for_two_types,
    "one name, two weights": of_one_name_for_two_weights,
    "one name, one below another": of_one_name_below_another,
    "a sequence that grows": of_a_sequence_that_grows,
    "a sequence that is given": of_a_sequence_that_is_given,
    "one of two sequences": of_one_of_two_sequences,
    "a state that stays in fp32": of_a_state_that_stays_in_fp32,
}


@pytest.mark.parametrize("name", CASES)
def test_bodies_answer_in_fp16_what_they_answer_in_fp32(name: str) -> None:
    model, feeds = CASES[name]()
    onnx.checker.check_model(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        half = to_fp16(onnx.ModelProto.FromString(model.SerializeToString()))
    onnx.checker.check_model(half)
    for feed in feeds:
        for expected, answer in zip(run(model, feed), run(half, feed), strict=True):
            assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
            numpy.testing.assert_allclose(answer, expected, rtol=2e-3, atol=2e-3)
