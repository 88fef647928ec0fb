"""Format ``onnx`` from trees: one TreeEnsembleRegressor of ai.onnx.ml 3, and what the objective makes of its sums."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
from onnx import ModelProto, TensorProto, helper, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.convert import onnx_graph
from triton_converters.convert.task import Task
from triton_converters.graph.opsets import READ_BY_ALL
from triton_converters.load.trees import INPUT, OUTPUT, TreesFramework
from triton_converters.trees.forest import ZERO, Forest, Link

OPSET, ML_OPSET = 17, 3
"""Operator sets that are written: TreeEnsembleRegressor has thresholds in double from ai.onnx.ml 3 on."""
SUMS = "sums"


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx.

    Raises StageError: ConversionUnsupported (fp16: thresholds would move), and what ``onnx_graph.convert_file`` and
    ``onnx_graph.finish`` raise.
    """
    assert isinstance(task.framework, TreesFramework)
    if task.half:
        message = f"{task.framework.path} holds trees, whose thresholds fp16 would move: use precision fp32"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
    path = directory / FORMATS["onnx"].file
    onnx_graph.save(graph_of(task.framework.forest), path)
    if task.request.onnx_opset != OPSET:
        onnx_graph.convert_file(path, task.request.onnx_opset, "trees are written in")
    onnx_graph.finish(task, directory, cast=False)


def graph_of(forest: Forest) -> ModelProto:
    """Return the graph, from INPUT, [rows, features], to OUTPUT, [rows, numbers] in float32."""
    kind = helper.np_dtype_to_tensor_dtype(numpy.dtype(forest.type))
    given = INPUT
    nodes: list[Any] = []
    constants = []
    if forest.zero_is_missing.any():
        given = "values"
        values = {"zero": numpy.array(ZERO), "missing": numpy.array(numpy.nan)}
        constants = [numpy_helper.from_array(each.astype(forest.type), name) for name, each in values.items()]
        constants.append(numpy_helper.from_array(forest.zero_is_missing[None], "columns"))
        nodes += [
            helper.make_node("Abs", [INPUT], ["size"]),
            helper.make_node("LessOrEqual", ["size", "zero"], ["is_zero"]),
            helper.make_node("And", ["is_zero", "columns"], ["is_missing"]),
            helper.make_node("Where", ["is_missing", "missing", INPUT], [given]),
        ]
    nodes += [_ensemble(forest, given), *ANSWERS[forest.link]]
    width = 1 if forest.link is Link.BEST else forest.targets
    graph = helper.make_graph(
        nodes,
        "trees",
        [helper.make_tensor_value_info(INPUT, kind, ["rows", forest.features])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["rows", width])],
        constants,
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=READ_BY_ALL, producer_name="triton-operator")


def _ensemble(forest: Forest, given: str) -> Any:
    """Return the node that sums up what the leaves add, [rows, targets]."""
    ends = numpy.append(forest.roots, len(forest.left))
    tree = numpy.repeat(numpy.arange(len(forest.roots)), numpy.diff(ends))
    number = numpy.arange(len(forest.left)) - forest.roots[tree]
    left, right = (numpy.where(forest.is_leaf, 0, each - forest.roots[tree]) for each in (forest.left, forest.right))
    weights = {"base_values": forest.base, "nodes_values": forest.bound, "target_weights": forest.added}
    is_double = forest.type == "float64"
    lists = {
        "nodes_treeids": tree,
        "nodes_nodeids": number,
        "nodes_featureids": forest.feature,
        "nodes_truenodeids": left,
        "nodes_falsenodeids": right,
        "nodes_missing_value_tracks_true": forest.missing_left.astype(int),
        "target_treeids": tree[forest.adding],
        "target_nodeids": number[forest.adding],
        "target_ids": forest.added_to,
        "nodes_modes": numpy.where(forest.is_leaf, "LEAF", "BRANCH_LT"),
        **({} if is_double else weights),
    }
    typed = {f"{name}_as_tensor": numpy_helper.from_array(each, name) for name, each in weights.items()}
    return helper.make_node(
        "TreeEnsembleRegressor",
        [given],
        [SUMS if ANSWERS[forest.link] else OUTPUT],
        domain="ai.onnx.ml",
        n_targets=forest.targets,
        **{name: each.tolist() for name, each in lists.items()},
        **(typed if is_double else {}),
    )


ANSWERS: Mapping[Link, Sequence[Any]] = {
    Link.IDENTITY: (),
    Link.SIGMOID: (helper.make_node("Sigmoid", [SUMS], [OUTPUT]),),
    Link.EXP: (helper.make_node("Exp", [SUMS], [OUTPUT]),),
    Link.SOFTMAX: (helper.make_node("Softmax", [SUMS], [OUTPUT], axis=1),),
    Link.SOFTPLUS: (helper.make_node("Softplus", [SUMS], [OUTPUT]),),
    Link.SIGNED_SQUARE: (
        helper.make_node("Abs", [SUMS], ["sizes"]),
        helper.make_node("Mul", [SUMS, "sizes"], [OUTPUT]),
    ),
    Link.BEST: (
        helper.make_node("ArgMax", [SUMS], ["best"], axis=1),
        helper.make_node("Cast", ["best"], [OUTPUT], to=TensorProto.FLOAT),
    ),
    Link.POSITIVE: (
        helper.make_node("Sign", [SUMS], ["signs"]),
        helper.make_node("Relu", ["signs"], [OUTPUT]),
    ),
}
"""The nodes that make the answer of the sums; without any, the sums are it."""
