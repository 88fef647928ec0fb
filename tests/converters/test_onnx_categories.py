"""What a graph tells of the words and numbers that it looks up, and the inputs that are made of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.onnx_models import Graph
from tests.converters.run_stage import run_reference
from triton_converters.claim_store.dump import Array, read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.load.onnx_categories import MOST, categories

ML = "ai.onnx.ml"
COLOURS, SIZES = ("red", "blue", "green"), ("s", "l")


def found(nodes: list[Any], shape: Sequence[Any] = ("n", 1), **weights: Any) -> Any:
    table = helper.make_tensor_value_info("x", TensorProto.STRING, shape)
    return categories(helper.make_graph(nodes, "g", [table], [], list(weights.values()))).get("x")


def encoder(given: str, words: Sequence[str] = COLOURS, kind: str = "OneHotEncoder") -> Any:
    lists = {
        "OneHotEncoder": {"cats_strings": words},
        "CategoryMapper": {"cats_strings": words, "cats_int64s": range(len(words))},
        "LabelEncoder": {"keys_strings": words, "values_int64s": range(len(words))},
        "TfIdfVectorizer": {"pool_strings": words},
    }
    return helper.make_node(kind, [given], [f"{given}_y"], domain=ML, **lists[kind])


@pytest.mark.parametrize("kind", ["OneHotEncoder", "LabelEncoder", "TfIdfVectorizer"])
@pytest.mark.parametrize("shape", [("n",), ("n", 1)], ids=["one axis", "a column"])
def test_what_an_operator_looks_up(kind: str, shape: Sequence[Any]) -> None:
    assert found([encoder("x", kind=kind)], shape) == (COLOURS,)


def test_both_kinds_of_what_may_be_either() -> None:
    assert found([encoder("x", kind="CategoryMapper")]) == ((0, 1, 2, *COLOURS),)


def test_words_of_newer_graphs() -> None:
    keys = helper.make_tensor("keys", TensorProto.STRING, [2], [b"s", b"l"])
    assert found([helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_tensor=keys)]) == (SIZES,)


def test_words_that_are_compared_with_and_one_that_is_none_of_them() -> None:
    words = helper.make_tensor("words", TensorProto.STRING, [1], [b"male"])
    assert found([helper.make_node("Equal", ["x", "words"], ["y"])], words=words) == (("male", "other"),)


def test_each_column_has_its_own() -> None:
    places = [helper.make_tensor(f"place{each}", TensorProto.INT64, [1], [each]) for each in (0, 2)]
    chosen = [
        helper.make_node("ArrayFeatureExtractor", ["x", f"place{each}"], [f"x{each}"], domain=ML) for each in (0, 2)
    ]
    nodes = [*chosen, encoder("x0"), encoder("x2", SIZES)]
    assert found(nodes, ("n", 3), a=places[0], b=places[1]) == (COLOURS, (), SIZES)


def test_texts_that_are_taken_apart_have_several_words() -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("StringNormalizer", ["flat"], ["lower"]),
        helper.make_node("Tokenizer", ["lower"], ["words"], domain="com.microsoft"),
        encoder("words", kind="TfIdfVectorizer"),
    ]
    assert found(nodes) == ((*COLOURS, "red blue green", "blue green"),)


def test_the_first_of_many() -> None:
    assert len(found([encoder("x", [str(each) for each in range(2 * MOST)])])[0]) == MOST


def test_nothing_is_known_of_a_table_of_any_width_or_of_what_is_made_of_one() -> None:
    assert found([encoder("x")], ("n", "columns")) is None
    assert found([helper.make_node("StringConcat", ["x", "x"], ["y"]), encoder("y")]) is None


def made(model: Any, mount: Path) -> dict[str, Array]:
    """The inputs that the reference stage makes for a model."""
    source, key = "d" * 64, "e" * 16
    directory = layout.source_directory(source)
    directory.mkdir(parents=True)
    onnx.save(model, str(directory / "model.onnx"))
    code = ModelCode("onnx", Entrypoint("model.onnx", {}), 4)
    run_reference(ReferenceRequest(key, source, code, None, 32, needs_labels=False))
    batches = list(read_batches(layout.reference_directory(key)))
    return {name: numpy.concatenate([each.inputs[name] for each in batches]) for name in batches[0].inputs}


@pytest.mark.parametrize(
    ("kind", "attribute", "known"),
    [
        (TensorProto.STRING, "cats_strings", ["red", "blue", "a long word of its kind"]),
        (TensorProto.INT64, "cats_int64s", [10, 20, 300]),
        (TensorProto.FLOAT, "cats_int64s", [10, 20, 300]),
    ],
    ids=["words", "integers", "numbers"],
)
def test_inputs_are_categories_which_a_strict_encoder_alone_accepts(
    mount: Path, kind: int, attribute: str, known: list[Any]
) -> None:
    graph = Graph()
    codes = graph.add("OneHotEncoder", "colour", domain=ML, zeros=0, **{attribute: known})
    table = graph.add("Concat", graph.add("Flatten", codes), "size", axis=1)
    model = graph.model(
        {"colour": (kind, ["n", 1]), "size": (TensorProto.FLOAT, ["n", 1])},
        {"y": (graph.add("MatMul", table, graph.weight(4, 1)), TensorProto.FLOAT, ["n", 1])},
    )
    model.opset_import.append(helper.make_opsetid(ML, 3))
    inputs = made(model, mount)
    assert sorted(numpy.unique(inputs["colour"]).tolist()) == sorted(known)
    assert 0 <= inputs["size"].min() < inputs["size"].max() < 1


def test_columns_of_which_nothing_is_known_stay_as_they_are(mount: Path) -> None:
    graph = Graph()
    place = graph.constant(numpy.array([1]))
    part = graph.add("ArrayFeatureExtractor", "row", place, domain=ML)
    codes = graph.add("LabelEncoder", part, domain=ML, keys_int64s=[70, 80], values_floats=[1.0, 2.0])
    whole = graph.add("Mul", graph.add("Cast", "row", to=TensorProto.FLOAT), codes)
    model = graph.model({"row": (TensorProto.INT64, ["n", 2])}, {"y": (whole, TensorProto.FLOAT, ["n", 2])})
    model.opset_import.append(helper.make_opsetid(ML, 3))
    row = made(model, mount)["row"]
    assert set(row[:, 1].tolist()) == {70, 80}
    assert set(row[:, 0].tolist()) == {0, 1}
