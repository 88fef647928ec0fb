"""What a graph tells of the numbers in a table: thresholds, means, and rows that are compared."""

from typing import Any

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from triton_converters.claim_store.dump import Array
from triton_converters.load.onnx_columns import MOST, points

ML = "ai.onnx.ml"


def found(nodes: list[Any], columns: int = 2, **weights: Array) -> Any:
    table = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", columns])
    graph = helper.make_graph(
        nodes, "g", [table], [], [numpy_helper.from_array(values, name) for name, values in weights.items()]
    )
    return points(graph).get("x")


def rounded(columns: Any) -> list[tuple[float, ...]]:
    """The lowest and the highest number of each column."""
    return [(round(numbers[0], 3), round(numbers[-1], 3)) for numbers in columns]


def tree(given: str, features: list[int], thresholds: list[float]) -> Any:
    modes = ["BRANCH_LEQ"] * len(features) + ["LEAF"]
    return helper.make_node(
        "TreeEnsembleRegressor", [given], ["y"], domain=ML, nodes_featureids=[*features, 0],
        nodes_values=[*thresholds, -1e9], nodes_modes=modes,
    )  # fmt: skip


def test_thresholds_of_trees_without_their_leaves() -> None:
    assert rounded(found([tree("x", [0, 1, 0], [100.0, 7.0, 200.0])])) == [(90, 210), (0, 14)]


def test_a_tree_of_newer_graphs() -> None:
    splits = numpy_helper.from_array(numpy.array([3.0, 13.0]), "splits")
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain=ML, nodes_featureids=[1, 1], nodes_splits=splits
    )  # fmt: skip
    assert rounded(found([node])) == [(0, 1), (2, 14)]


def test_trees_of_chosen_columns() -> None:
    chosen = helper.make_node("Gather", ["x", "second"], ["part"], axis=1)
    assert rounded(found([chosen, tree("part", [0, 0], [10.0, 20.0])], second=numpy.array([1]))) == [(0, 1), (9, 21)]


@pytest.mark.parametrize(
    "between",
    [
        helper.make_node("Cast", ["x"], ["same"], to=TensorProto.FLOAT),
        helper.make_node("Identity", ["x"], ["same"]),
    ],
    ids=["cast", "identity"],
)
def test_a_scaler_behind_what_changes_no_number(between: Any) -> None:
    scaler = helper.make_node("Scaler", ["same"], ["y"], domain=ML, offset=[100.0, 5.0], scale=[0.1, 1.0])
    assert rounded(found([between, scaler])) == [(76, 124), (2.6, 7.4)]


def test_a_mean_that_is_subtracted() -> None:
    node = helper.make_node("Sub", ["x", "mean"], ["y"])
    assert rounded(found([node], mean=numpy.array([10.0, 0.0], numpy.float32))) == [(-2, 22), (-1.2, 1.2)]


def test_rows_that_a_table_is_compared_with() -> None:
    rows = numpy.array([[1.0, 10.0], [2.0, 30.0]], numpy.float32)
    expected = [(0.9, 2.1), (8, 32)]
    assert (
        rounded(found([helper.make_node("CDist", ["x", "rows"], ["y"], domain="com.microsoft")], rows=rows)) == expected
    )
    squares = helper.make_node("ReduceSumSquare", ["x"], ["squares"])
    product = helper.make_node("Gemm", ["x", "rows"], ["y"], transB=1)
    assert rounded(found([squares, product], rows=rows)) == expected
    vectors = helper.make_node("SVMRegressor", ["x"], ["y"], domain=ML, support_vectors=rows.ravel().tolist())
    assert rounded(found([vectors])) == expected


def test_the_weights_of_a_network_are_no_rows() -> None:
    weights = numpy.array([[1.0, 10.0], [2.0, 30.0]], numpy.float32)
    assert found([helper.make_node("Gemm", ["x", "rows"], ["y"], transB=1)], rows=weights) is None


@pytest.mark.parametrize(
    "node",
    [
        tree("x", [0, 7], [1.0, 2.0]),
        helper.make_node("Scaler", ["x"], ["y"], domain=ML, offset=[1.0, 2.0, 3.0], scale=[1.0]),
        helper.make_node("SVMRegressor", ["x"], ["y"], domain=ML),
        helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML),
        helper.make_node("Relu", ["x"], ["y"]),
    ],
    ids=["no such column", "another number of columns", "no vectors", "no splits", "nothing"],
)
def test_what_a_graph_does_not_tell_or_tells_wrongly(node: Any) -> None:
    assert found([node]) is None


def test_a_picture_is_no_table() -> None:
    picture = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    mean = numpy_helper.from_array(numpy.ones((1, 3, 1, 1), numpy.float32), "mean")
    graph = helper.make_graph([helper.make_node("Sub", ["x", "mean"], ["y"])], "g", [picture], [], [mean])
    assert points(graph) == {}


def test_columns_that_are_joined_filled_in_and_chosen() -> None:
    """scikit-learn's columns are inputs of their own, of any type, in front of an imputer."""
    inputs = [
        helper.make_tensor_value_info("price", TensorProto.FLOAT, ["n", 1]),
        helper.make_tensor_value_info("sizes", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("age", TensorProto.INT64, ["n", 1]),
    ]
    nodes = [
        helper.make_node("Cast", ["age"], ["years"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["price", "sizes", "years"], ["table"], axis=1),
        helper.make_node("Imputer", ["table"], ["filled"], domain=ML, imputed_value_floats=[0.0]),
        helper.make_node("ArrayFeatureExtractor", ["filled", "chosen"], ["part"], domain=ML),
        tree("part", [0, 1, 2], [100.0, 200.0, 40.0]),
    ]
    chosen = numpy_helper.from_array(numpy.array([[0, 2, 3]]), "chosen")
    result = points(helper.make_graph(nodes, "g", inputs, [], [chosen]))
    assert {name: rounded(columns) for name, columns in result.items()} == {
        "price": [(0, 200)],
        "sizes": [(0, 1), (0, 400)],
        "age": [(0, 80)],
    }


@pytest.mark.parametrize("far", [float("inf"), 1e30, -1e30, 3e38])
def test_a_threshold_far_from_the_others_does_not_hide_them(far: float) -> None:
    thresholds = [100.0, 200.0, 300.0, far]
    (numbers, _) = found([tree("x", [0] * 4, thresholds)])
    assert all(numpy.isfinite(numbers))
    drawn = numpy.interp(numpy.random.default_rng(0).random(32), numpy.linspace(0, 1, len(numbers)), numbers)
    leaves = {int(numpy.searchsorted([100.0, 200.0, 300.0], each)) for each in drawn}
    assert leaves == {0, 1, 2, 3}


def test_of_many_thresholds_some_are_kept() -> None:
    (numbers, _) = found([tree("x", [0] * 500, [float(each) for each in range(500)])])
    assert len(numbers) == MOST
    assert numbers[0] < 0
    assert numbers[-1] > 499
