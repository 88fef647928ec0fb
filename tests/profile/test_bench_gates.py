"""The benchmark of the gates: its rules make what they say, and its truth is the clients'."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.gates import right, run
from bench.gates.decisions import Decision, Truth, above, exact, higher, loudness, top1, truth
from bench.gates.surgery import Surgery
from bench.gates.trial import batched
from bench.gates.wrong import WRONG, Known
from hack.gate_rates import Row, rates, share
from triton_converters.claim_store.dump import Array

RANDOM = numpy.random.default_rng(2)
LENGTHS = (5, 7, 9)


def model() -> Any:
    """Two pictures and a mask to scores, their twins and a class: all rules apply to it."""
    nodes = [
        helper.make_node("Cast", ["mask"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "channel"], ["columns"]),
        helper.make_node("Sub", ["left", "right"], ["difference"]),
        helper.make_node("Mul", ["difference", "columns"], ["seen"]),
        helper.make_node("Conv", ["seen", "kernel"], ["convolved"]),
        helper.make_node("ReduceMean", ["convolved"], ["pooled"], axes=[2], keepdims=0),
        helper.make_node("MatMul", ["pooled", "head"], ["scores"]),
        helper.make_node("Sigmoid", ["scores"], ["twins"]),
        helper.make_node("ArgMax", ["scores"], ["class"], axis=1, keepdims=0),
    ]
    weights = [
        numpy_helper.from_array(RANDOM.normal(size=(6, 3, 1)).astype(numpy.float32), "kernel"),
        numpy_helper.from_array(RANDOM.normal(size=(6, 4)).astype(numpy.float32), "head"),
        numpy_helper.from_array(numpy.array([1]), "channel"),
    ]
    picture = TensorProto.FLOAT, ["batch", 3, "length"]
    inputs = [("left", *picture), ("right", *picture), ("mask", TensorProto.INT64, ["batch", "length"])]
    outputs = [
        ("scores", TensorProto.FLOAT, ["batch", 4]),
        ("twins", TensorProto.FLOAT, ["batch", 4]),
        ("class", TensorProto.INT64, ["batch"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        *([helper.make_tensor_value_info(*each) for each in side] for side in (inputs, outputs)),
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


MODEL = model()
NAMES = ("scores", "twins", "class")


def batch(length: int = 9) -> dict[str, Array]:
    pictures = {name: RANDOM.normal(3, 2, (4, 3, length)).astype(numpy.float32) for name in ("left", "right")}
    return pictures | {"mask": (numpy.arange(length) < length - numpy.arange(4)[:, None]).astype(numpy.int64)}


def answers(graph: Any, inputs: dict[str, Array]) -> dict[str, Array]:
    return right.PLAIN(graph, NAMES)(inputs)


def known() -> Known:
    typical = batch()

    def inside(graph: Any, names: list[str]) -> dict[str, Array]:
        watched = Surgery(graph)
        watched.graph.output.extend(helper.make_empty_tensor_value_info(each) for each in names)
        return right.PLAIN(watched.model, tuple(names))(typical)

    lengths = {"left": {2: LENGTHS}, "right": {2: LENGTHS}, "mask": {1: LENGTHS}}
    return Known(typical, inside, answers(MODEL, typical), lengths, batched=True)


@pytest.mark.parametrize("rule", WRONG)
def test_each_wrong_rule_changes_what_clients_get_and_not_the_signature(rule: str) -> None:
    facts = known()
    variants = list(WRONG[rule](MODEL, facts))
    assert variants
    inputs = facts.typical
    framework = answers(MODEL, inputs)
    for place, graph in variants:
        served = answers(graph, inputs)
        assert {name: array.dtype for name, array in served.items()} == {name: framework[name].dtype for name in NAMES}
        assert truth(framework, served, (Decision("class", exact),), ()).is_wrong, place
        assert Surgery(graph).inputs().keys() == Surgery(MODEL).inputs().keys()


@pytest.mark.parametrize("rule", [name for name in right.RIGHT if name not in ("another runtime", "simplified graph")])
def test_each_right_rule_only_rounds_differently(rule: str) -> None:
    made = right.RIGHT[rule]
    graph = made.graph(MODEL)
    assert graph is not None
    inputs = batch()
    served = made.engine(graph, NAMES)(inputs)
    worth = truth(answers(MODEL, inputs), served, (Decision("class", exact),), ())
    assert worth.decibels > 100
    assert worth.changed == 0


def test_sums_in_another_order_are_other_sums() -> None:
    graph = right.sums_reordered(MODEL)
    assert [node.op_type for node in graph.graph.node].count("Gather") == 2
    assert right.sums_reordered(answerless()) is None


def answerless() -> Any:
    node = helper.make_node("Identity", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
    return helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))


def test_no_rule_invents_a_place() -> None:
    one = numpy.ones(3, numpy.float32)
    nothing = Known({"x": one}, lambda *_: {}, {"y": one}, {}, batched=False)
    absent = {
        "outputs swapped",
        "inputs swapped",
        "mask dropped",
        "batch frozen",
        "length frozen",
        "layer of another seed",
    }
    for rule in absent:
        assert list(WRONG[rule](answerless(), nothing)) == []


@pytest.mark.parametrize(
    ("read", "framework", "served", "share"),
    [
        (exact, [[0] * 20 + [1] * 4], [[0] * 24], 1.0),
        (exact, [[0] * 20 + [1] * 4], [[0] * 20 + [1, 1, 1, 0]], 0.25),
        (exact, [[0] * 20 + [1] * 4], [[0] * 20 + [1] * 4], 0.0),
        (above(0.5), [[0.1] * 9 + [0.9]], [[0.1] * 10], 1.0),
        (above(0.5), [[0.1] * 9 + [0.501]], [[0.1] * 10], 0.0),
        (top1(), [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], 0.5),
        (top1(), [[0.5, 0.501]], [[0.501, 0.5]], 0.0),
    ],
)
def test_what_is_usual_or_a_near_tie_is_no_changed_decision(
    read: Callable[..., Any], framework: list[Any], served: list[Any], share: float
) -> None:
    assert Decision("y", read).changed(numpy.array(framework), numpy.array(served)) == share


def test_loudness_is_the_ratio_of_sums_of_squares() -> None:
    ones = numpy.ones((4, 2))
    assert loudness(ones, ones * 1.01) == pytest.approx(40)
    assert loudness(ones, ones) == numpy.inf
    assert loudness(ones, numpy.where(ones > 0, numpy.nan, ones)) == -numpy.inf
    masked = numpy.array([[-numpy.inf, 1.0]])
    assert loudness(masked, masked.copy()) == numpy.inf
    assert loudness(masked, numpy.array([[0.0, 1.0]])) == -numpy.inf


def test_samples_are_batched_by_shape_and_each_once() -> None:
    rows = [{"x": numpy.full(length, number)} for number, length in enumerate([3, 5, 3, 3, 5])]
    found = [(numbers, inputs["x"].shape) for numbers, inputs in batched(rows, 2)]
    assert found == [([0, 2], (2, 3)), ([1, 4], (2, 5)), ([3], (1, 3))]
    assert [numbers for numbers, _ in batched(rows, 0)] == [[0], [1], [2], [3], [4]]


def row(*, wrong: bool, reason: str, is_right: bool = False) -> Row:
    return Row("s", "r", "", "fp32", True, wrong, is_right, 30.0, 0.0, reason, "")


def test_rates_tell_missed_from_refused() -> None:
    (found,) = rates(
        [
            row(wrong=True, reason="OutputsDiffer"),
            row(wrong=True, reason="Passed"),
            row(wrong=False, reason="Passed", is_right=True),
            row(wrong=False, reason="OutputsDiffer"),
        ]
    )
    assert [len(each) for each in (found.wrong, found.missed, found.right, found.refused)] == [2, 1, 1, 0]
    assert found.caught_by() == {"OutputsDiffer": 1}
    assert share(found.missed, found.wrong) == "1 of 2 (50.0 %)"


def test_prices_in_steps_of_16_change_decisions_though_they_are_loud() -> None:
    prices = (20_000 + 5 * numpy.random.default_rng(2).normal(size=(256, 1))).astype(numpy.float32)
    rounded = prices.astype(numpy.float16).astype(numpy.float32)
    found = truth({"price": prices}, {"price": rounded}, (Decision("price", higher),), ())
    assert found.decibels > Truth.LEAST
    assert found.is_wrong
    assert not truth({"price": prices}, {"price": prices + 0.01}, (Decision("price", higher),), ()).is_wrong


def test_what_a_finite_mask_hides_does_not_make_an_output_loud() -> None:
    scores = numpy.random.default_rng(2).random((64, 10)).astype(numpy.float32)
    hidden, wrong = (numpy.where(scores < 0.7, numpy.float32(-1e4), each) for each in (scores, 1 - scores))
    assert not truth({"y": hidden}, {"y": wrong}, (), ()).is_wrong
    assert truth({"y": hidden}, {"y": wrong}, (), (), hidden=-1e3).is_wrong
    assert not truth({"y": hidden}, {"y": hidden}, (), (), hidden=-1e3).is_wrong


def test_what_a_stage_prints_is_no_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(_: object, precision: str, tell: Callable[[str], None]) -> Iterator[Row]:
        print("reference: the framework answers samples")
        tell("outputs swapped: does not apply")
        yield judged

    judged = row(wrong=True, reason="OutputsDiffer")
    monkeypatch.setattr(run, "rows", rows)
    monkeypatch.setattr(sys, "argv", ["run", "vit", "fp32"])
    run.main()
    told, read = map(json.loads, capsys.readouterr().out.splitlines())
    assert told == "outputs swapped: does not apply"
    assert Row(**read) == judged
