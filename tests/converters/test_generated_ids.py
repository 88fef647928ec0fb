"""Generated integers that choose rows of a table: most rows are asked for, whatever lies before the table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.converters.onnx_models import Graph
from tests.converters.run_stage import run_reference
from triton_converters.claim_store.dump import Arrays, read_all, read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.load.onnx_tables import about

SOURCE = "d" * 64
ROWS, IDS = 1000, 64
TABLE = numpy.arange(1, ROWS + 1, dtype=numpy.float32)[:, None]
"""Each row holds its number, counted from 1."""
FLOATS, INTEGERS = TensorProto.FLOAT, TensorProto.INT64
OPEN: Any = None
"""A shape that nobody declares."""


def gathered(kind: str, *numbers: int) -> Callable[[Graph, str], str]:
    """Rows at what an operator makes of the ids and some numbers."""
    return lambda graph, table: graph.add(
        "Gather", table, graph.add(kind, "ids", *(graph.constant(numpy.array(each)) for each in numbers))
    )


def where(graph: Graph, table: str) -> str:
    is_known = graph.add("Less", "ids", graph.constant(numpy.array(ROWS)))
    return graph.add("Gather", table, graph.add("Where", is_known, "ids", graph.constant(numpy.array(0))))


def squeezed(graph: Graph, table: str) -> str:
    small = graph.add("Cast", graph.add("Neg", "ids"), to=TensorProto.INT32)
    return graph.add("Gather", table, graph.add("Neg", small))


def column(graph: Graph, name: str = "ids") -> str:
    return graph.add("Unsqueeze", name, graph.constant(numpy.array([1])))


def one_hot(graph: Graph, table: str) -> str:
    depth = graph.add("Cast", graph.constant(numpy.array([ROWS], numpy.int32)), to=INTEGERS)
    after = graph.add("Sub", "ids", graph.constant(numpy.array(1)))
    ends = graph.constant(numpy.array([0, 1], numpy.float32))
    return graph.add("MatMul", graph.add("OneHot", after, depth, ends), table)


def scattered(graph: Graph, table: str) -> str:
    chosen = (
        graph.constant(numpy.zeros((ROWS, 1), numpy.float32)),
        column(graph),
        graph.constant(numpy.ones((IDS, 1), "f4")),
    )
    return graph.add("Mul", table, graph.add("ScatterND", *chosen))


def copied(graph: Graph, table: str) -> str:
    places = graph.constant(numpy.arange(IDS)[:, None])
    return graph.add("Gather", table, graph.add("ScatterND", graph.constant(numpy.zeros(IDS, int)), places, "ids"))


def sliced(graph: Graph, table: str) -> str:
    halves = graph.add("Reshape", graph.add("Abs", "ids"), graph.constant(numpy.array([2, -1])))
    last = graph.add("Slice", halves, *(graph.constant(numpy.array([each])) for each in (1, 2, 0)))
    return graph.add("Gather", table, graph.add("Cast", last, to=TensorProto.INT32))


def computed(graph: Graph, table: str) -> str:
    return graph.add("Gather", graph.add("Add", table, graph.constant(numpy.zeros(1, numpy.float32))), "ids")


def in_branch(graph: Graph, table: str) -> str:
    branches = {
        name: helper.make_graph(
            [helper.make_node("Gather", [table, "ids"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOATS, OPEN)],
        )
        for name in ("then_branch", "else_branch")
    }
    return graph.add("If", graph.constant(numpy.array(True)), **branches)


def in_loop(graph: Graph, table: str) -> str:
    row = helper.make_node("Gather", [table, "id"], ["row"])
    given, made = (
        helper.make_tensor_value_info("id", INTEGERS, []),
        helper.make_tensor_value_info("row", FLOATS, OPEN),
    )
    return graph.add("Scan", "ids", body=helper.make_graph([row], "body", [given], [made]), num_scan_inputs=1)


def reversed_list(graph: Graph, table: str) -> str:
    halves = graph.add("SplitToSequence", "ids", graph.constant(numpy.array(IDS // 2)))
    first, last = (graph.add("SequenceAt", halves, graph.constant(numpy.array(each))) for each in (1, 0))
    joined = graph.add("ConcatFromSequence", graph.add("SequenceConstruct", first, last), axis=0)
    return graph.add("Gather", table, joined)


WAYS: dict[str, Callable[[Graph, str], str]] = {
    "Add": gathered("Add", 7),
    "Sub": gathered("Sub", 7),
    "Mul": gathered("Mul", 3),
    "Min": gathered("Min", ROWS - 1),
    "Max": gathered("Max", 0),
    "Mod": gathered("Mod", ROWS),
    "Clip": gathered("Clip", 0, ROWS - 1),
    "Where": where,
    "int32": squeezed,
    "Slice": sliced,
    "GatherND": lambda graph, table: graph.add("GatherND", table, column(graph)),
    "OneHot": one_hot,
    "ScatterND": scattered,
    "scattered ids": copied,
    "computed": computed,
    "If": in_branch,
    "Sequence": reversed_list,
    "function": lambda graph, table: graph.add("Chosen", table, "ids", domain="own"),
    "Scan": in_loop,
}


def looked_up(way: str, table: Any = TABLE) -> Any:
    graph = Graph()
    y = WAYS[way](graph, graph.constant(table))
    model = graph.model({"ids": (INTEGERS, [IDS])}, {"y": (y, FLOATS, OPEN)})
    gather, operators = helper.make_node("Gather", ["t", "i"], ["r"]), helper.make_opsetid("", 17)
    model.functions.append(helper.make_function("own", "Chosen", ["t", "i"], ["r"], [gather], [operators]))
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def refer(model: Any, max_batch_size: int = 0) -> ReferenceResult:
    directory = layout.source_directory(SOURCE)
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(directory / "model.onnx"))
    code = ModelCode("onnx", Entrypoint("model.onnx", {}), max_batch_size)
    return run_reference(ReferenceRequest(SOURCE[:16], SOURCE, code, None, 256, needs_labels=False))


def given(name: str = "ids") -> Any:
    return numpy.concatenate([each.inputs[name] for each in read_batches(layout.reference_directory(SOURCE[:16]))])


def answers(model: Any, ids: Any) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"ids": ids})[0]


@pytest.mark.parametrize("way", WAYS)
def test_most_rows_of_a_table_are_asked_for_and_the_range_is_told(mount: Path, way: str) -> None:
    result = refer(looked_up(way))
    ids = given()
    assert len(numpy.unique(ids)) > 200
    assert result.warnings[0] == f"inputs were generated: ids INT64[{IDS}] of {ids.min()} to {ids.max()}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_broken", [True, False])
def test_a_candidate_that_lacks_rows_fails_and_a_right_one_passes(mount: Path, way: str, is_broken: bool) -> None:
    result, home = refer(looked_up(way)), layout.reference_directory(SOURCE[:16])
    asked = numpy.unique(answers(looked_up(way), numpy.arange(IDS) % 2))
    table = numpy.where(numpy.isin(TABLE, asked) | (not is_broken), TABLE, 0)
    assert not is_broken or numpy.count_nonzero(table) <= 2, "what 0 and 1 choose is right"

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Any]:
        return {"y": answers(looked_up(way, table), inputs["ids"])}

    tolerance = DEFAULT_TOLERANCES["fp32"]
    failed = judge(
        ServedCandidate(
            declared=lambda: result.signature,
            infer=infer,
            signature=result.signature,
            precision="fp32",
            tolerance=tolerance,
            scales=lambda: scales_of(read_all(home), False, tolerance, "fp32"),
            batches=read_batches(home),
            sizes=(),
            files=(),
            keep_outputs=False,
            published_types=(),
            engine_caches=(),
        )
    )
    assert (failed and failed.reason) is (Reason.OUTPUTS_DIFFER if is_broken else None), failed


def test_each_input_gets_the_range_that_the_model_takes_beside_the_others(mount: Path) -> None:
    """Their sum chooses among 1,000 rows, and the last one among 4 rows too."""
    graph = Graph()
    total = graph.add("Add", "a", graph.add("Add", "b", "c"))
    y = graph.add(
        "Add", graph.add("Gather", graph.constant(TABLE), total), graph.add("Gather", graph.weight(4, 1), "c")
    )
    inputs: dict[str, Any] = {name: (INTEGERS, ["batch", 8]) for name in "abc"}
    result = refer(graph.model(inputs, {"y": (y, FLOATS, ["batch", 8, 1])}), max_batch_size=4)
    assert given("a").max() > 900
    assert 1 <= given("c").max() < 4
    assert (given("a") + given("b") + given("c")).max() < ROWS
    assert "b INT64[8] of 0 to 1" in result.warnings[0]


def test_a_difference_that_may_be_anything_is_tried_before_it_is_recorded(mount: Path) -> None:
    graph = Graph()
    y = graph.add(
        "Gather",
        graph.constant(TABLE[:9]),
        graph.add("Sub", "a", graph.add("Mul", "b", graph.constant(numpy.array(2)))),
    )
    inputs: dict[str, Any] = {name: (INTEGERS, ["batch", 1]) for name in "ab"}
    refer(graph.model(inputs, {"y": (y, FLOATS, ["batch", 1, 1])}), max_batch_size=4)
    chosen = given("a") - 2 * given("b")
    assert -9 <= chosen.min() <= chosen.max() < 9


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32])
def test_no_integer_is_beyond_its_type(mount: Path, kind: int) -> None:
    graph = Graph()
    index = graph.add("Add", graph.add("Cast", "x", to=INTEGERS), graph.constant(numpy.array(500)))
    y = graph.add("Gather", graph.constant(TABLE), index)
    refer(graph.model({"x": (kind, [IDS])}, {"y": (y, FLOATS, OPEN)}))
    assert given("x").max() > 100


def last_step(name: str) -> Any:
    """The state at the end of each sequence, and how much of it a mask of the same number lets through."""
    graph = Graph()
    place = column(graph, graph.add("Sub", name, graph.constant(numpy.array(1))))
    rest = graph.add("Cast", graph.add("Unsqueeze", place, graph.constant(numpy.array([2]))), to=INTEGERS)
    wide = graph.add("Expand", rest, graph.constant(numpy.array([1, 1, 4])))
    y = graph.add("GatherElements", "x", wide, axis=1)
    return graph.model(
        {"x": (FLOATS, ["batch", 16, 4]), name: (INTEGERS, ["batch"])}, {"y": (y, FLOATS, ["batch", 1, 4])}
    )


@pytest.mark.parametrize(("name", "most"), [("count", 16), ("lengths", 1), ("end_mask", 1)])
def test_what_ends_a_sequence_is_within_it(mount: Path, name: str, most: int) -> None:
    refer(last_step(name), max_batch_size=4)
    assert given(name).min() >= 0
    assert given(name).max() <= most


def test_a_count_of_steps_stays_small(mount: Path) -> None:
    """A large one would need memory for as many steps."""
    graph = Graph()
    zero, one = (graph.constant(numpy.array(each)) for each in (0, 1))
    scalar = graph.add("Squeeze", "steps")
    numbers = graph.add("Range", zero, graph.add("Add", scalar, one), one)
    y = graph.add("Gather", graph.constant(TABLE), graph.add("Add", scalar, numbers))
    refer(graph.model({"steps": (INTEGERS, [1])}, {"y": (y, FLOATS, OPEN)}))
    assert set(numpy.unique(given("steps"))) <= {0, 1}


@pytest.mark.parametrize("kind", [INTEGERS, TensorProto.BOOL])
def test_flags_and_masks_that_scale_ids_hide_or_do_not(mount: Path, kind: int) -> None:
    graph = Graph()
    kept = graph.add(
        "Mul", graph.add("Add", "ids", graph.constant(numpy.array(1))), graph.add("Cast", "mask", to=INTEGERS)
    )
    y = graph.add("Gather", graph.constant(TABLE), kept)
    inputs: dict[str, Any] = {"ids": (INTEGERS, [IDS]), "mask": (kind, [IDS])}
    refer(graph.model(inputs, {"y": (y, FLOATS, [IDS, 1])}))
    assert set(numpy.unique(given("mask"))) == {0, 1}
    assert given().max() > 900


def test_classes_that_a_label_is_compared_with_are_all_given(mount: Path) -> None:
    graph = Graph()
    hot = graph.add("Equal", column(graph), graph.constant(numpy.arange(10)[None]))
    refer(graph.model({"ids": (INTEGERS, [IDS])}, {"y": (graph.add("Cast", hot, to=FLOATS), FLOATS, [IDS, 10])}))
    assert set(numpy.unique(given())) == set(range(10))


def test_the_number_that_ends_a_text_is_given_behind_an_offset_too(mount: Path) -> None:
    graph = Graph()
    after = graph.add("Gather", graph.constant(TABLE), graph.add("Add", "ids", graph.constant(numpy.array(1))))
    ends = graph.add("Cast", graph.add("Equal", "ids", graph.constant(numpy.array(700))), to=FLOATS)
    refer(
        graph.model({"ids": (INTEGERS, [IDS])}, {"y": (graph.add("Mul", after, column(graph, ends)), FLOATS, [IDS, 1])})
    )
    assert (given() == 700).mean() > 0.02


def test_only_what_may_choose_rows_is_tried_with_large_integers() -> None:
    graph = Graph()
    y = graph.add("Mul", "x", graph.add("Cast", graph.add("Add", "n", "n"), to=FLOATS))
    model = graph.model({"x": (FLOATS, ["b", 4]), "n": (INTEGERS, ["b", 1])}, {"y": (y, FLOATS, ["b", 4])})
    assert about(model.graph) == {}
