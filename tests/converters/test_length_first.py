"""Graphs whose first axis is open but counts no samples: the probe finds that, and a request keeps the axis."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto

from tests.converters.onnx_models import Graph
from tests.converters.run_stage import run_reference
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult

SOURCE, REFERENCE = "d" * 64, "e" * 16
FLOAT = TensorProto.FLOAT
Axes = list[Any]


def recurrent(*axes: Any) -> Any:
    """What PyTorch exports of an LSTM: time first, samples second."""
    graph = Graph()
    states = graph.add("LSTM", "x", graph.weight(1, 32, 6), graph.weight(1, 32, 8), hidden_size=8)
    y = graph.add("Squeeze", states, graph.constant(numpy.array([1])))
    return graph.model({"x": (FLOAT, [*axes, 6])}, {"y": (y, FLOAT, [*axes, 8])})


def convolved(*axes: Any) -> Any:
    """A convolution along a first axis of at least five steps."""
    graph = Graph()
    rows = graph.add("Transpose", "x", perm=[1, 2, 0])
    found = graph.add("Conv", rows, graph.weight(3, 6, 5), kernel_shape=[5])
    y = graph.add("Transpose", found, perm=[2, 0, 1])
    return graph.model({"x": (FLOAT, [*axes, 6])}, {"y": (y, FLOAT, [*axes, 3])})


def attention(*axes: Any) -> Any:
    """Every point looks at all points, which are the first axis."""
    graph = Graph()
    scores = graph.add("Softmax", graph.add("MatMul", "x", graph.add("Transpose", "x", perm=[1, 0])), axis=1)
    y = graph.add("MatMul", scores, "x")
    return graph.model({"x": (FLOAT, [*axes, 4])}, {"y": (y, FLOAT, [*axes, 4])})


def square(*axes: Any) -> Any:
    """A symmetric matrix of all pairs, which has to be square."""
    graph = Graph()
    y = graph.add("Add", "x", graph.add("Transpose", "x", perm=[1, 0]))
    return graph.model({"x": (FLOAT, [*axes])}, {"y": (y, FLOAT, [*axes])})


def detections(*axes: Any) -> Any:
    """One row for each value above a threshold, of the whole batch, though the axis has the batch's name."""
    graph = Graph()
    above = graph.add("Greater", "x", graph.constant(numpy.array(2.0, numpy.float32)))
    rows = graph.add("Cast", graph.add("Transpose", graph.add("NonZero", above), perm=[1, 0]), to=FLOAT)
    return graph.model({"x": (FLOAT, [*axes, 3, 8])}, {"y": (rows, FLOAT, [*axes, 3])})


def single(*axes: Any) -> Any:
    """A graph that reshapes to a single sample."""
    graph = Graph()
    row = graph.add("Reshape", "x", graph.constant(numpy.array([1, 4])))
    return graph.model({"x": (FLOAT, [*axes, 4])}, {"y": (row, FLOAT, [*axes, 4])})


CASES: list[tuple[Callable[..., Any], Axes]] = [
    (recurrent, ["seq", "batch"]),
    (recurrent, ["s0", "s1"]),
    (recurrent, [None, None]),
    (convolved, ["time", "batch"]),
    (convolved, ["a", "b"]),
    (attention, ["points"]),
    (attention, ["n"]),
    (square, ["n", "n"]),
    (detections, ["batch"]),
    (single, ["batch"]),
]
NAMES = [f"{make.__name__}-{'-'.join(map(str, axes))}" for make, axes in CASES]


def publish(model: Any, loader: str = "") -> None:
    shutil.rmtree(layout.source_directory(SOURCE), ignore_errors=True)
    layout.source_directory(SOURCE).mkdir(parents=True)
    onnx.save(model, str(layout.source_directory(SOURCE) / "model.onnx"))
    if loader:
        (layout.source_directory(SOURCE) / "loader.py").write_text(loader)


def refer(max_batch_size: int, loads: bool = False) -> ReferenceResult:
    code = ModelCode("onnx", Entrypoint("model.onnx", {}), max_batch_size)
    loader = Entrypoint("loader.py", {}) if loads else None
    return run_reference(ReferenceRequest(REFERENCE, SOURCE, code, loader, 16, needs_labels=False))


@pytest.mark.parametrize(("make", "axes"), CASES, ids=NAMES)
def test_an_axis_that_counts_no_samples_is_no_batch(mount: Path, make: Callable[..., Any], axes: Axes) -> None:
    publish(make(*axes))
    with pytest.raises(StageError) as caught:
        refer(4)
    assert caught.value.reason is Reason.BATCHING_UNSUPPORTED, caught.value.message
    assert "set models[].config.maxBatchSize to 0" in caught.value.message
    signature = refer(0).signature
    assert [tensor.dims[0] for tensor in signature.inputs] == [-1]


@pytest.mark.parametrize(
    ("make", "axes", "shape"),
    [
        (recurrent, ["seq", "batch"], (224, 1, 6)),
        (recurrent, [None, None], (1, 224, 6)),
        (attention, ["points"], (224, 4)),
        (attention, ["n"], (1, 4)),
        (square, ["n", "n"], (224, 224)),
        (detections, ["batch"], (1, 3, 8)),
        (convolved, ["a", "b"], (224, 224, 6)),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_a_generated_request_is_one_sample_of_some_length(
    mount: Path, make: Callable[..., Any], axes: Axes, shape: tuple[int, ...]
) -> None:
    publish(make(*axes))
    refer(0)
    batches = read_batches(layout.reference_directory(REFERENCE))
    assert {batch.inputs["x"].shape for batch in batches} == {shape}


@pytest.mark.parametrize("name", ["batch", "seq_batch"])
def test_the_name_of_an_input_is_no_name_of_its_axes(mount: Path, name: str) -> None:
    publish(Graph().model({name: (FLOAT, [None, None, 6])}, {"y": (name, FLOAT, [None, None, 6])}))
    refer(0)
    batches = read_batches(layout.reference_directory(REFERENCE))
    assert {batch.inputs[name].shape for batch in batches} == {(1, 224, 6)}


LOADER = """
import numpy

def get_dataloader_fn(batch_size: int):
    def batches():
        random = numpy.random.default_rng(0)
        for number in range(4):
            x = random.random(({rows}, *{shape})).astype("float32")
            yield numpy.arange(len(x)) + 8 * number, {{"x": x}}, {{}}
    return batches
"""


@pytest.mark.parametrize("rows", ["batch_size", "1"])
@pytest.mark.parametrize(
    ("make", "axes", "shape"),
    [
        (recurrent, ["s0", "s1"], (2, 6)),
        (attention, ["n"], (4,)),
        (single, ["batch"], (4,)),
        (detections, ["b"], (3, 8)),
    ],
    ids=["recurrent", "attention", "single", "detections"],
)
def test_a_dataloader_shows_it_too(
    mount: Path, make: Callable[..., Any], axes: Axes, shape: tuple[int, ...], rows: str
) -> None:
    publish(make(*axes), LOADER.format(rows=rows, shape=shape))
    with pytest.raises(StageError) as caught:
        refer(4, loads=True)
    assert caught.value.reason is Reason.BATCHING_UNSUPPORTED, caught.value.message


def test_a_failure_that_has_nothing_to_do_with_the_batch_stays_one(mount: Path) -> None:
    publish(single("batch"), LOADER.format(rows="batch_size", shape=(5,)))
    with pytest.raises(StageError) as caught:
        refer(4, loads=True)
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
