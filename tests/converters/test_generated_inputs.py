"""The reference of a model without a dataloader: inputs are made from what its graph declares."""

import base64
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.onnx_models import Graph, resnet50, transformer
from tests.converters.run_stage import run_reference
from triton_converters.claim_store.dump import Batch, read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult
from triton_converters.load import onnx_tables, randomness

SOURCE, REFERENCE = "d" * 64, "e" * 16
Refer = Callable[..., ReferenceResult]


@pytest.fixture
def refer(mount: Path) -> Refer:
    """Publishes a model as a source without any other file, and runs the reference stage."""

    def run(model: Any, max_batch_size: int = 4, max_samples: int = 256, source: str = SOURCE) -> ReferenceResult:
        directory = layout.source_directory(source)
        directory.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(directory / "model.onnx"))
        code = ModelCode("onnx", Entrypoint("model.onnx", {}), max_batch_size)
        return run_reference(ReferenceRequest(source[:16], source, code, None, max_samples, needs_labels=False))

    return run


def refusal(refer: Refer, model: Any, **settings: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        refer(model, **settings)
    return caught.value


def batches(source: str = SOURCE) -> list[Batch]:
    return list(read_batches(layout.reference_directory(source[:16])))


def identity(kind: int, shape: Sequence[Any]) -> Any:
    """A model whose output is its input x."""
    return Graph().model({"x": (kind, shape)}, {"y": ("x", kind, shape)})


def shapes(result: ReferenceResult) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in batches()[0].inputs.items()}


def test_a_picture_model_of_any_size_gets_pictures(refer: Refer) -> None:
    graph = Graph()
    features = graph.add("GlobalAveragePool", graph.conv("images", 3, 8, 3, 2))
    model = graph.model(
        {"images": (TensorProto.FLOAT, ["batch", 3, "height", "width"])},
        {"features": (features, TensorProto.FLOAT, ["batch", 8, 1, 1])},
    )
    result = refer(model)
    assert result.warnings == ("inputs were generated: images FP32[3, 224, 224]",)
    assert [tensor.dims for tensor in result.signature.inputs] == [(3, -1, -1)]
    found = batches()
    assert [batch.inputs["images"].shape for batch in found] == [(4, 3, 224, 224)] * 8
    pictures = [picture.tobytes() for batch in found for picture in batch.inputs["images"]]
    assert len(set(pictures)) == len(pictures) == 32
    assert all(0 <= batch.inputs["images"].min() <= batch.inputs["images"].max() < 1 for batch in found)


def test_a_fixed_size_stays_as_it_is(refer: Refer) -> None:
    refer(identity(TensorProto.FLOAT, ["batch", 5, 7]), max_batch_size=1)
    assert [batch.inputs["x"].shape for batch in batches()] == [(1, 5, 7)] * 8


def test_a_real_architecture_answers_and_no_more_samples_are_made_than_asked_for(refer: Refer) -> None:
    result = refer(resnet50(10), max_batch_size=2, max_samples=3)
    assert (result.samples, result.batches) == (3, 2)
    assert len(result.warnings) == 1


def test_words_are_rows_of_the_table_that_they_index(refer: Refer) -> None:
    model = transformer()
    limit = onnx_tables.rows(model.graph)["tokens"]
    refer(model, max_batch_size=2)
    tokens = numpy.concatenate([batch.inputs["tokens"] for batch in batches()])
    assert 2 < tokens.max() < limit
    assert tokens.min() >= 0


def test_the_smallest_table_bounds_the_words_through_casts_and_constants() -> None:
    graph = Graph()
    large = graph.constant(numpy.zeros((100, 4), numpy.float32))
    graph.nodes.append(
        helper.make_node(
            "Constant", [], ["small"], value=helper.make_tensor("t", TensorProto.FLOAT, [3, 7], [0.0] * 21)
        )
    )
    cast = graph.add("Cast", graph.add("Unsqueeze", "ids", graph.constant(numpy.array([1]))), to=TensorProto.INT64)
    graph.add("Gather", large, cast)
    result = graph.add("Gather", graph.add("Identity", "small"), cast, axis=1)
    model = graph.model(
        {"ids": (TensorProto.INT32, ["batch"]), "other": (TensorProto.INT32, ["batch"])},
        {"y": (result, TensorProto.FLOAT, None)},
    )
    assert onnx_tables.rows(model.graph) == {"ids": 7}


def test_words_that_are_joined_and_cut_index_the_same_table() -> None:
    graph = Graph()
    both = graph.add("Concat", "ids", graph.add("Cast", "more", to=TensorProto.INT64), axis=1)
    ends = [graph.constant(numpy.array([each])) for each in (0, 5, 1)]
    cut = graph.add("Slice", both, *ends)
    result = graph.add("Gather", graph.weight(70, 4), cut)
    model = graph.model(
        {"ids": (TensorProto.INT64, ["batch", 3]), "more": (TensorProto.INT32, ["batch", 3])},
        {"y": (result, TensorProto.FLOAT, None)},
    )
    assert onnx_tables.rows(model.graph) == {"ids": 70, "more": 70}


def test_numbers_that_words_are_compared_with_are_among_them(refer: Refer) -> None:
    """A text ends where its special token is: by chance, few of a large table's words are that one."""
    graph = Graph()
    words = graph.add("Gather", graph.weight(50_000, 4), "ids")
    graph.nodes.append(
        helper.make_node("Constant", [], ["end"], value=helper.make_tensor("t", TensorProto.INT64, [1], [49_407]))
    )
    ends = graph.add("Unsqueeze", graph.add("Equal", "ids", "end"), graph.constant(numpy.array([2])))
    y = graph.add("Where", ends, graph.constant(numpy.float32(0)), words)
    refer(graph.model({"ids": (TensorProto.INT64, ["batch", 16])}, {"y": (y, TensorProto.FLOAT, ["batch", 16, 4])}))
    ids = numpy.concatenate([batch.inputs["ids"] for batch in batches()])
    assert 0.02 < (ids == 49_407).mean() < 0.25
    assert len(numpy.unique(ids)) > 300


def test_a_number_beyond_the_table_is_no_word(refer: Refer) -> None:
    graph = Graph()
    words = graph.add("Gather", graph.weight(9, 4), "ids")
    never = graph.add("Cast", graph.add("Equal", "ids", graph.constant(numpy.array(100))), to=TensorProto.FLOAT)
    y = graph.add("Add", words, graph.add("Unsqueeze", never, graph.constant(numpy.array([2]))))
    refer(graph.model({"ids": (TensorProto.INT64, ["batch", 16])}, {"y": (y, TensorProto.FLOAT, ["batch", 16, 4])}))
    assert set(numpy.unique(numpy.concatenate([batch.inputs["ids"] for batch in batches()]))) == set(range(9))


def test_a_one_hot_code_bounds_the_classes() -> None:
    graph = Graph()
    rows = graph.add("Unsqueeze", "bytes", graph.constant(numpy.array([2])))
    hot = graph.add("Cast", graph.add("Equal", rows, graph.constant(numpy.arange(257)[None, None])), to=1)
    is_padding = graph.add("Cast", graph.add("Equal", "bytes", graph.constant(numpy.array([256]))), to=1)
    model = graph.model(
        {"bytes": (TensorProto.INT64, ["batch", 8])},
        {"y": (hot, TensorProto.FLOAT, ["batch", 8, 257]), "z": (is_padding, TensorProto.FLOAT, ["batch", 8])},
    )
    assert onnx_tables.rows(model.graph) == {"bytes": 257}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TensorProto.INT64, {0, 1}),
        (TensorProto.BOOL, {False, True}),
    ],
)
def test_integers_of_which_nothing_is_known_are_0_and_1(refer: Refer, kind: int, values: set[Any]) -> None:
    refer(identity(kind, ["batch", 6]))
    assert {value for batch in batches() for value in batch.inputs["x"].flat} == values


def pixels(source: str = SOURCE) -> Any:
    return numpy.concatenate([batch.inputs["x"] for batch in batches(source)])


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
def test_bytes_are_pixels_from_one_end_of_their_range_to_the_other(refer: Refer, kind: int) -> None:
    refer(identity(kind, ["batch", 16, 16, 3]))
    limits = numpy.iinfo(pixels().dtype)
    assert (pixels().min(), pixels().max()) == (limits.min, limits.max)
    assert len(numpy.unique(pixels())) == 256


@pytest.mark.parametrize(
    ("kind", "least", "most"), [(TensorProto.INT16, -32000, 32000), (TensorProto.UINT16, 600, 65000)]
)
def test_a_sound_is_as_loud_as_its_type_allows(refer: Refer, kind: int, least: int, most: int) -> None:
    refer(identity(kind, ["batch", 4000]))
    assert pixels()[:-1].min() < least
    assert pixels()[:-1].max() > most
    assert not pixels()[-1].any()


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT64])
def test_a_mask_of_any_type_hides_or_does_not_and_never_all(refer: Refer, kind: int) -> None:
    """A row of a mask that is nothing but 0 has no answer that two precisions share."""
    graph = Graph()
    whole = graph.add("Add", "x", graph.add("Cast", "attention_mask", to=TensorProto.FLOAT))
    shape = ["batch", 64]
    inputs = {"x": (TensorProto.FLOAT, shape), "attention_mask": (kind, shape)}
    refer(graph.model(inputs, {"y": (whole, TensorProto.FLOAT, shape)}))
    masks = numpy.concatenate([batch.inputs["attention_mask"] for batch in batches()])
    assert set(numpy.unique(masks)) == {0, 1}
    assert masks.any(axis=1).all()
    assert not pixels()[-1].any()


def test_a_masked_picture_is_no_mask(refer: Refer) -> None:
    shape = ["batch", 3, 8, 8]
    refer(
        Graph().model({"masked_image": (TensorProto.FLOAT, shape)}, {"y": ("masked_image", TensorProto.FLOAT, shape)})
    )
    assert len(numpy.unique(batches()[0].inputs["masked_image"])) > 300


def test_bytes_that_index_a_table_are_its_rows(refer: Refer) -> None:
    graph = Graph()
    rows = graph.add("Gather", graph.weight(10, 4), graph.add("Cast", "x", to=TensorProto.INT64))
    refer(graph.model({"x": (TensorProto.UINT8, ["batch", 32])}, {"y": (rows, TensorProto.FLOAT, ["batch", 32, 4])}))
    assert set(numpy.unique(pixels())) == set(range(10))


@pytest.mark.parametrize(
    ("kind", "attributes", "rows"),
    [("GatherElements", {"axis": 0}, 9), ("ScatterElements", {"axis": 1}, 4), ("OneHot", {}, 9)],
)
def test_other_operators_that_choose_rows_bound_their_index_too(
    kind: str, attributes: dict[str, Any], rows: int
) -> None:
    graph = Graph()
    table = graph.weight(9, 4)
    if kind == "OneHot":
        depth = graph.constant(numpy.array([9]))
        y = graph.add(kind, "ids", depth, graph.constant(numpy.array([0, 1], numpy.float32)))
    else:
        y = graph.add(kind, table, "ids", *([table] if kind == "ScatterElements" else []), **attributes)
    model = graph.model({"ids": (TensorProto.INT64, ["n", 1])}, {"y": (y, TensorProto.FLOAT, None)})
    assert onnx_tables.rows(model.graph) == {"ids": rows}


def test_bytes_that_the_model_refuses_are_flags(refer: Refer) -> None:
    """What they index is computed, so that no table tells how large they may be."""
    graph = Graph()
    pair = graph.add("Concat", graph.add("ReduceMin", "x"), graph.add("ReduceMax", "x"), axis=0)
    table = graph.add("Reshape", graph.add("Identity", pair), graph.constant(numpy.array([2])))
    chosen = graph.add("Gather", table, graph.add("Cast", "flags", to=TensorProto.INT64))
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 4]), "flags": (TensorProto.UINT8, ["batch", 8])},
        {"y": (chosen, TensorProto.FLOAT, ["batch", 8])},
    )
    refer(model, max_batch_size=1)
    assert {value for batch in batches() for value in batch.inputs["flags"].flat} == {0, 1}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.UINT8])
def test_the_last_sample_is_a_black_picture(refer: Refer, kind: int) -> None:
    """An fp16 file that divides by a norm is NaN for it, and for nothing else."""
    refer(identity(kind, ["batch", 4, 4]))
    assert not pixels()[-1].any()
    assert all(picture.any() for picture in pixels()[:-1])


def test_without_a_batch_dimension_the_last_request_is_black(refer: Refer) -> None:
    refer(identity(TensorProto.FLOAT, [1, 4]), max_batch_size=0)
    assert [bool(batch.inputs["x"].any()) for batch in batches()] == [True] * 7 + [False]


def test_zeros_for_which_the_model_has_no_finite_answer_are_left_out(refer: Refer) -> None:
    graph = Graph()
    y = graph.add("Div", "x", graph.add("ReduceL2", "x", axes=[1], keepdims=1))
    model = graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (y, TensorProto.FLOAT, ["batch", 4])})
    result = refer(model)
    assert pixels()[-1].any()
    assert result.samples == 32


def test_words_and_flags_are_as_in_every_sample_where_pictures_are_black(refer: Refer) -> None:
    """A text of nothing but padding, and a mask that hides all of it, are nobody's request."""
    model = transformer()
    refer(model, max_batch_size=2)
    assert all(tokens.any() for batch in batches() for tokens in batch.inputs["tokens"])


def test_one_sample_alone_is_not_black(refer: Refer) -> None:
    refer(identity(TensorProto.FLOAT, ["batch", 4]), max_samples=2)
    assert pixels().any(axis=1).all()


def graph_network() -> Any:
    """Nodes, and edges between them: what its edges may be depends on how many nodes there are."""
    graph = Graph()
    ends = graph.add("Gather", "edges", graph.constant(numpy.array(0)))
    y = graph.add("Gather", "nodes", ends)
    return graph.model(
        {"nodes": (TensorProto.FLOAT, ["n", 4]), "edges": (TensorProto.INT64, [2, 1])},
        {"y": (y, TensorProto.FLOAT, ["e", 4])},
    )


def test_an_index_of_0_is_tried(refer: Refer) -> None:
    """A graph of one node has no other."""
    refer(graph_network(), max_batch_size=0)
    found = batches()
    assert all(batch.inputs["edges"].max() < len(batch.inputs["nodes"]) for batch in found)


def test_inputs_that_the_graph_refuses_later_were_not_generated(refer: Refer) -> None:
    """The chance of each batch to hold a number above 0.995 is about a third, and 0.03 of them are in the first."""
    graph = Graph()
    largest = graph.add("ReduceMax", "x", keepdims=0)
    index = graph.add("Cast", graph.add("Greater", largest, graph.constant(numpy.float32(0.995))), to=TensorProto.INT64)
    chosen = graph.add("Gather", graph.add("Reshape", "x", graph.constant(numpy.array([1, 1, 80]))), index)
    model = graph.model({"x": (TensorProto.FLOAT, [1, 80])}, {"y": (chosen, TensorProto.FLOAT, [1, 80])})
    failure = refusal(refer, model, max_batch_size=0)
    assert failure.reason is Reason.INPUTS_NOT_GENERATED
    assert failure.message.startswith(
        "model.onnx accepts the first inputs that were generated, but not others like them, x float32[1, 80]: "
    )
    assert failure.message.endswith("write a dataloader and name it in spec.dataloader")


def test_lengths_are_those_of_the_sequences(refer: Refer) -> None:
    """With a length of 0 or 1, a model of sound would hear nothing."""
    graph = Graph()
    sums = graph.add("ReduceSum", "waveforms", graph.constant(numpy.array([1])), keepdims=0)
    scaled = graph.add("Mul", sums, graph.add("Cast", "waveforms_lens", to=TensorProto.FLOAT))
    model = graph.model(
        {"waveforms": (TensorProto.FLOAT, ["batch", "N"]), "waveforms_lens": (TensorProto.INT64, ["batch"])},
        {"y": (scaled, TensorProto.FLOAT, ["batch"])},
    )
    refer(model)
    lengths = numpy.concatenate([batch.inputs["waveforms_lens"] for batch in batches()])
    assert 112 <= lengths.min() < lengths.max() <= 224


def test_texts_are_words(refer: Refer) -> None:
    refer(identity(TensorProto.STRING, ["batch", 2]))
    assert {"good", "day"} <= {word for batch in batches() for word in batch.inputs["x"].flat}


def test_a_symbol_has_one_size_in_all_inputs(refer: Refer) -> None:
    graph = Graph()
    model = graph.model(
        {"a": (TensorProto.FLOAT, ["batch", "length"]), "b": (TensorProto.FLOAT, ["batch", "length"])},
        {"y": (graph.add("Add", "a", "b"), TensorProto.FLOAT, ["batch", "length"])},
    )
    found = shapes(refer(model))
    assert found["a"] == found["b"] == (4, 224)


def test_a_size_that_the_model_needs_is_found(refer: Refer) -> None:
    """Its graph does not say that there are 3 channels, and that the length is a multiple of 256."""
    graph = Graph()
    blocks = graph.add("Reshape", "x", graph.constant(numpy.array([0, 3, -1, 256])))
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", "channels", "length"])},
        {"y": (blocks, TensorProto.FLOAT, ["batch", 3, "blocks", 256])},
    )
    assert shapes(refer(model))["x"] == (4, 3, 256)


def test_a_mask_of_ones_is_tried_if_flags_give_no_finite_answer(refer: Refer) -> None:
    graph = Graph()
    divisor = graph.add("Cast", "mask", to=TensorProto.FLOAT)
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 9]), "mask": (TensorProto.INT64, ["batch", 9])},
        {"y": (graph.add("Div", "x", divisor), TensorProto.FLOAT, ["batch", 9])},
    )
    refer(model)
    assert {value for batch in batches() for value in batch.inputs["mask"].flat} == {1}


def test_the_same_source_gets_the_same_inputs_and_another_gets_others(refer: Refer) -> None:
    made = []
    model, sources = identity(TensorProto.FLOAT, ["batch", 4]), (SOURCE, "c" * 64, SOURCE)
    for source in sources:
        shutil.rmtree(layout.reference_directory(source[:16]), ignore_errors=True)
        refer(model, source=source)
        made.append(batches(source)[0].inputs["x"])
    first, other, again = made
    assert numpy.array_equal(first, again)
    assert not numpy.array_equal(first, other)


def test_a_constant_output_is_a_warning(refer: Refer) -> None:
    graph = Graph()
    zeros = graph.add("Mul", "x", graph.constant(numpy.zeros(1, numpy.float32)))
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 4])},
        {"y": (zeros, TensorProto.FLOAT, ["batch", 4])},
    )
    assert refer(model).warnings == (
        "inputs were generated: x FP32[4]",
        "output y is the same for all 32 samples (check that the model uses its input): agreement proves nothing there",
    )


def test_a_detector_that_finds_nothing_is_a_warning_that_says_what_helps(refer: Refer) -> None:
    graph = Graph()
    flat = graph.add("Reshape", "x", graph.constant(numpy.array([-1])))
    found = graph.add("Compress", flat, graph.add("Greater", flat, graph.constant(numpy.float32(2))), axis=0)
    model = graph.model({"x": (TensorProto.FLOAT, [1, 4])}, {"y": (found, TensorProto.FLOAT, ["found"])})
    result = refer(model, max_batch_size=0)
    assert result.signature.outputs[0].dims == (-1,)
    assert result.warnings == (
        "inputs were generated: x FP32[1, 4]",
        "the model finds nothing in them (y empty), so nothing is compared there; write a dataloader whose samples"
        " hold something",
    )


def test_a_random_answer_is_a_failure_all_the_same(refer: Refer) -> None:
    graph = Graph()
    noise = graph.add("RandomNormalLike", "x")
    model = graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (noise, TensorProto.FLOAT, ["batch", 4])})
    failure = refusal(refer, model)
    assert failure.reason is Reason.REFERENCE_NOT_REPRODUCIBLE
    assert failure.message.startswith(
        "model.onnx draws random numbers by RandomNormalLike (node RandomNormalLike_0): give 0 for an input that scales"
        " the noise, or export the model with the noise as an input (the first batch gives different outputs"
    )


def noise_in_a_branch() -> Any:
    """As Piper's, whose lengths are random too."""
    branches = {}
    for name in ("then_branch", "else_branch"):
        node = helper.make_node("RandomUniformLike", ["x"], [name], name="/flows/noise")
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4])
        branches[name] = helper.make_graph([node], name, [], [output])
    graph = Graph()
    y = graph.add("If", graph.constant(numpy.array(True)), **branches)
    return graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (y, TensorProto.FLOAT, ["batch", 4])})


def dropout(training: bool) -> Any:
    graph = Graph()
    rest = [graph.constant(numpy.float32(0.5)), graph.constant(numpy.array(True))] if training else []
    y = graph.add("Dropout", "x", *rest)
    return graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (y, TensorProto.FLOAT, ["batch", 4])})


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (noise_in_a_branch(), ("RandomUniformLike (node /flows/noise)",)),
        (dropout(training=True), ("Dropout (node Dropout_0)",)),
        (dropout(training=False), ()),
    ],
    ids=["branch", "dropout", "no dropout"],
)
def test_what_is_random_in_a_graph_is_named(model: Any, found: tuple[str, ...]) -> None:
    assert randomness.of_onnx(model) == found


def test_a_model_that_draws_numbers_and_loses_them_is_served(refer: Refer) -> None:
    graph = Graph()
    nothing = graph.add("Mul", graph.add("RandomNormalLike", "x"), graph.constant(numpy.float32(0)))
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 4])},
        {"y": (graph.add("Add", "x", nothing), TensorProto.FLOAT, ["batch", 4])},
    )
    assert refer(model).samples == 32


def impossible() -> Any:
    """A model that takes two lengths whose product is a large prime number."""
    graph = Graph()
    rows = graph.add("Reshape", "x", graph.constant(numpy.array([0, 7919])))
    return graph.model({"x": (TensorProto.FLOAT, ["batch", "length"])}, {"y": (rows, TensorProto.FLOAT, None)})


def not_a_number() -> Any:
    """A model that takes anything, and answers NaN."""
    graph = Graph()
    zero = graph.add("Mul", "x", graph.constant(numpy.array([0], numpy.float32)))
    y = graph.add("Div", zero, zero)
    return graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (y, TensorProto.FLOAT, ["batch", 4])})


def single() -> Any:
    """A graph that declares a batch of any size, but reshapes to a single sample."""
    graph = Graph()
    row = graph.add("Reshape", "x", graph.constant(numpy.array([1, 4])))
    return graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (row, TensorProto.FLOAT, ["batch", 4])})


def test_a_graph_that_reshapes_to_a_single_sample_is_served_one_at_a_time(refer: Refer) -> None:
    assert refer(single(), max_batch_size=1).samples == 8


@pytest.mark.parametrize(
    ("model", "max_batch_size", "words"),
    [
        (
            identity(TensorProto.FLOAT, [1, 4]),
            1,
            "first dimension of input x of model.onnx is no batch of any size",
        ),
        (identity(TensorProto.FLOAT, []), 1, "set models[].config.maxBatchSize to 0"),
        (impossible(), 2, "accepts no inputs that were tried, first x float32[1, 224]: model.onnx failed"),
        (
            not_a_number(),
            2,
            "answers nothing finite to the inputs that were tried, first x float32[1, 4]: 4 of 4 elements of output y",
        ),
    ],
    ids=["fixed", "scalar", "impossible", "nan"],
)
def test_what_cannot_be_generated_says_what_to_do(refer: Refer, model: Any, max_batch_size: int, words: str) -> None:
    failure = refusal(refer, model, max_batch_size=max_batch_size)
    assert failure.reason is Reason.INPUTS_NOT_GENERATED
    assert words in failure.message
    assert "maxBatchSize" in failure.message or failure.message.endswith("name it in spec.dataloader")


def test_a_graph_that_answers_no_batch_says_so(refer: Refer) -> None:
    failure = refusal(refer, single(), max_batch_size=2)
    assert failure.reason is Reason.BATCHING_UNSUPPORTED
    assert failure.message.startswith("a single sample works, but a batch of 2 fails: model.onnx failed in onnxruntime")
    assert "set models[].config.maxBatchSize to 0" in failure.message


def test_a_batch_of_which_one_sample_is_not_finite_is_no_matter_of_batches(refer: Refer) -> None:
    graph = Graph()
    y = graph.add("Log", graph.add("Sub", "x", graph.constant(numpy.array([0.05], numpy.float32))))
    model = graph.model({"x": (TensorProto.FLOAT, ["batch", 4])}, {"y": (y, TensorProto.FLOAT, ["batch", 4])})
    failure = refusal(refer, model, max_batch_size=16)
    assert failure.reason is Reason.REFERENCE_NOT_FINITE
    assert re.search(r"of 64 elements of output y are NaN, first for the sample with the id \d+, in ", failure.message)


def test_an_output_may_be_half_where_the_input_is_not(refer: Refer) -> None:
    graph = Graph()
    half = graph.add("Cast", "x", to=TensorProto.FLOAT16)
    model = graph.model({"x": (TensorProto.FLOAT, ["n", "m"])}, {"y": (half, TensorProto.FLOAT16, ["n", "m"])})
    assert [each.data_type for each in refer(model).signature.outputs] == ["FP16"]


def test_half_precision_goes_in_and_out(refer: Refer) -> None:
    signature = refer(identity(TensorProto.FLOAT16, ["batch", 4])).signature
    assert [each.data_type for each in (*signature.inputs, *signature.outputs)] == ["FP16", "FP16"]
    first = batches()[0]
    assert first.inputs["x"].dtype == numpy.float16
    numpy.testing.assert_array_equal(first.inputs["x"], first.outputs["y"])
    assert len(numpy.unique(first.inputs["x"])) > 1
    directory = layout.reference_directory(SOURCE[:16])
    step = json.loads((directory / "perf.json").read_text())["data"][0]["x"]
    assert base64.b64decode(step["content"]["b64"]) == first.inputs["x"][0].tobytes()


def test_double_precision_goes_in_and_out(refer: Refer) -> None:
    signature = refer(identity(TensorProto.DOUBLE, ["batch", 4])).signature
    assert [each.data_type for each in (*signature.inputs, *signature.outputs)] == ["FP64", "FP64"]


def test_without_a_batch_dimension_each_batch_is_a_request(refer: Refer) -> None:
    result = refer(identity(TensorProto.FLOAT, [1, 4]), max_batch_size=0)
    assert (result.samples, result.signature.max_batch_size) == (8, 0)
    assert [batch.inputs["x"].shape for batch in batches()] == [(1, 4)] * 8


@pytest.mark.parametrize(("first", "size"), [("batch_size", 1), ("N", 1), (None, 1), ("sequence_length", 224)])
def test_without_a_batch_dimension_a_request_is_one_sample(refer: Refer, first: str | None, size: int) -> None:
    """A model with a state has a batch that is not the first dimension of all its inputs."""
    graph = Graph()
    model = graph.model(
        {"frames": (TensorProto.FLOAT, [first, "time", 4]), "state": (TensorProto.FLOAT, [2, 1, 4])},
        {"y": (graph.add("ReduceSum", "frames"), TensorProto.FLOAT, [1, 1, 1])},
    )
    refer(model, max_batch_size=0)
    assert batches()[0].inputs["frames"].shape == (size, 224, 4)


@pytest.mark.parametrize("name", ["?", "dynamic", "dim_0"])
def test_axes_that_share_a_placeholder_have_sizes_of_their_own(refer: Refer, name: str) -> None:
    graph = Graph()
    model = graph.model(
        {"frames": (TensorProto.FLOAT, [name, name, 4])},
        {"y": (graph.add("ReduceSum", "frames"), TensorProto.FLOAT, [1, 1, 1])},
    )
    refer(model, max_batch_size=0)
    assert batches()[0].inputs["frames"].shape == (1, 224, 4)


def test_a_first_dimension_of_another_size_than_1_is_found(refer: Refer) -> None:
    graph = Graph()
    rows = graph.add("Reshape", "x", graph.constant(numpy.array([-1, 256])))
    model = graph.model({"x": (TensorProto.FLOAT, ["n", 8])}, {"y": (rows, TensorProto.FLOAT, ["m", 256])})
    refer(model, max_batch_size=0)
    assert batches()[0].inputs["x"].shape == (224, 8)


@pytest.mark.parametrize(
    ("shape", "generated"),
    [(["n", 3, "h", "w"], (1, 3, 224, 224)), (["n", "words"], (1, 224)), (["samples"], (224,))],
    ids=["pictures", "text", "sound"],
)
def test_an_open_first_dimension_that_is_no_batch_has_one_row_if_it_has_rows(
    refer: Refer, shape: list[Any], generated: tuple[int, ...]
) -> None:
    refer(identity(TensorProto.FLOAT, shape), max_batch_size=0)
    assert [batch.inputs["x"].shape for batch in batches()] == [generated] * 8


def test_several_rows_are_made_if_the_model_takes_no_single_one(refer: Refer) -> None:
    graph = Graph()
    pairs = graph.add("Reshape", "x", graph.constant(numpy.array([-1, 2, 4])))
    model = graph.model({"x": (TensorProto.FLOAT, ["n", 4])}, {"y": (pairs, TensorProto.FLOAT, ["pairs", 2, 4])})
    refer(model, max_batch_size=0)
    assert [batch.inputs["x"].shape for batch in batches()] == [(224, 4)] * 8


def test_without_a_batch_dimension_a_request_of_several_samples_is_refused(mount: Path) -> None:
    directory = layout.source_directory(SOURCE)
    directory.mkdir(parents=True)
    onnx.save(identity(TensorProto.FLOAT, ["rows", 4]), str(directory / "model.onnx"))
    code = ModelCode("onnx", Entrypoint("model.onnx", {}), 0)
    with pytest.raises(StageError, match="only a dataloader knows what a request of several samples looks like"):
        run_reference(ReferenceRequest(REFERENCE, SOURCE, code, None, 8, needs_labels=False, batch_sizes=(1, 256)))


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT64])
def test_rows_of_a_table_lie_where_its_trees_split(refer: Refer, kind: int) -> None:
    graph = Graph()
    tree = {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
        "nodes_values": [5000.0, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
        "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    answer = graph.add(
        "TreeEnsembleRegressor", graph.add("Cast", "x", to=TensorProto.FLOAT), domain="ai.onnx.ml", **tree
    )
    model = graph.model({"x": (kind, ["n", 2])}, {"y": (answer, TensorProto.FLOAT, ["n", 1])})
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    refer(model)
    rows = numpy.concatenate([batch.inputs["x"] for batch in batches()])
    assert rows[:, 0].min() >= 0
    assert rows[:, 0].max() <= 1
    assert rows[:, 1].min() < 5000 < rows[:, 1].max()
    assert len(numpy.unique(numpy.concatenate([batch.outputs["y"] for batch in batches()]))) == 2
