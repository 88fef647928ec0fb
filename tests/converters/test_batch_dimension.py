"""Whether a graph has a batch dimension: real graphs, old ones, cut ones and any bytes."""

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from tests.converters.onnx_models import Graph, resnet50, transformer
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.found import protobuf
from triton_converters.found.batches import counts_length, has_batch_dimension
from triton_converters.stages import source

FLOAT = TensorProto.FLOAT


def graph(inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    """A model with inputs and outputs of these shapes; nobody runs it."""
    first = next(iter(inputs))
    return Graph().model(
        {name: (FLOAT, shape) for name, shape in inputs.items()},
        {name: (first, FLOAT, shape) for name, shape in outputs.items()},
    )


def found(folder: Path, model: Any) -> bool:
    (folder / "model.bin").write_bytes(model.SerializeToString())
    return has_batch_dimension(folder, "model.bin")


@pytest.mark.parametrize("model", [resnet50(10), transformer()], ids=["ResNet-50", "transformer"])
def test_a_real_architecture_has_one(tmp_path: Path, model: Any) -> None:
    assert found(tmp_path, model)


@pytest.mark.parametrize(
    ("inputs", "outputs", "batched"),
    [
        ({"x": ["N", 3, "h"]}, {"y": ["N", 5]}, True),
        ({"x": [None, 3]}, {"y": [None]}, True),
        ({"x": [-1, 3]}, {"y": [-1, 5]}, True),
        ({"x": ["N", 3]}, {"y": [None, 5]}, True),
        ({"x": ["unk__610", 3]}, {"y": ["unk__611", 5]}, True),
        ({"x": ["DynamicDimension.0", 3]}, {"y": ["DynamicDimension.3"], "z": ["p2o.DynamicDimension.4"]}, True),
        ({"x": ["batch", 3]}, {"y": ["Softmax4195_dim_0", 5]}, True),
        ({"x": ["N", 3]}, {"y": ["?", 5], "z": ["dynamic"]}, True),
        ({"x": ["x_dynamic_axes_1", 3]}, {"y": ["y_dynamic_axes_1", 5]}, True),
        ({"x": ["N", 3]}, {"y": ["unk__", 5]}, False),
        ({"x": ["N", 3], "z": ["N"]}, {"y": ["N", 5], "w": ["N"]}, True),
        ({"x": [1, 3, 224, 224]}, {"y": [1, 1000]}, False),
        ({"x": ["N", 3]}, {"y": [1, 1000]}, False),
        ({"x": ["N", 3], "z": [8]}, {"y": ["N", 5]}, False),
        ({"x": ["N", 3]}, {"y": ["boxes", 4]}, False),
        ({"x": ["N", 3]}, {"y": []}, False),
        ({"x": ["N", 3]}, {"y": None}, False),
    ],
    ids=str,
)
def test_the_first_axis_of_everything_tells(
    tmp_path: Path, inputs: dict[str, Any], outputs: dict[str, Any], batched: bool
) -> None:
    assert found(tmp_path, graph(inputs, outputs)) is batched


@pytest.mark.parametrize(
    ("inputs", "outputs", "length"),
    [
        ({"x": ["seq", "batch", 6]}, {"y": ["seq", "batch", 8]}, True),
        ({"x": ["S", "batch_size", 6]}, {"y": ["S", "batch_size", 8]}, True),
        ({"x": [None, "batch", 6]}, {"y": [None, "batch", 8]}, True),
        ({"x": ["unk__1", "batch", 6]}, {"y": ["unk__2", 8]}, True),
        ({"x": ["num_points", 4]}, {"y": ["num_points", 2]}, True),
        ({"x": ["T", 80]}, {"y": ["T", 29]}, True),
        ({"audio": ["Time"]}, {"y": ["Time"]}, True),
        ({"adjacency": ["n", "n"]}, {"y": ["n"]}, True),
        ({"x": ["n", 4]}, {"y": ["n", "n"]}, True),
        ({"x": ["batch", "seq"]}, {"y": ["batch", "seq", 8]}, False),
        ({"x": ["batch_seq", 4]}, {"y": ["batch_seq", 4]}, False),
        ({"x": ["N", 3, "H", "W"]}, {"y": ["N", 5]}, False),
        ({"x": ["n", 4]}, {"y": ["n", 2]}, False),
        ({"x": [None, None]}, {"y": [None]}, False),
        ({"x": ["?", "?"]}, {"y": ["?", "?"]}, False),
        ({"x": ["sequences", 4]}, {"y": ["sequences", 2]}, False),
        ({"x": ["unk__610", 3]}, {"y": ["unk__611", 5]}, False),
        ({"x": ["p2o.DynamicDimension.0", 3]}, {"y": ["DynamicDimension.3"]}, False),
        ({"tokens": ["batch", 3]}, {"y": ["nodes_42_dim_0", 5]}, False),
    ],
    ids=str,
)
def test_the_names_of_open_axes_tell_what_to_try_first(
    tmp_path: Path, inputs: dict[str, Any], outputs: dict[str, Any], length: bool
) -> None:
    assert found(tmp_path, graph(inputs, outputs)), "names only order the tries"
    assert counts_length(tmp_path, "model.bin") is length


def test_weights_among_the_inputs_of_an_old_graph_are_no_inputs(tmp_path: Path) -> None:
    model = graph({"x": ["N", 3], "weight": [7, 3]}, {"y": ["N", 3]})
    assert not found(tmp_path, model)
    model.graph.initializer.append(numpy_helper.from_array(numpy.ones((7, 3), numpy.float32), "weight"))
    assert found(tmp_path, model)


def test_weights_in_files_of_their_own_are_not_opened(tmp_path: Path) -> None:
    onnx.save(resnet50(10), str(tmp_path / "m.onnx"), save_as_external_data=True, location="w", size_threshold=16)
    (tmp_path / "w").unlink()
    assert has_batch_dimension(tmp_path, "m.onnx")


def test_what_is_no_graph_has_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("import torch\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path.parent / "outside.onnx").write_bytes(graph({"x": ["N"]}, {"y": ["N"]}).SerializeToString())
    for path in ("text", "empty", "absent", ".", "../outside.onnx"):
        assert not has_batch_dimension(tmp_path, path), path


def test_a_graph_of_too_many_fields_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = graph({"x": ["N"]}, {"y": ["N"]})
    assert found(tmp_path, model)
    monkeypatch.setattr(protobuf, "MOST_FIELDS", 20)
    assert not found(tmp_path, model)


def test_a_name_that_never_ends_does_not_tell(tmp_path: Path) -> None:
    long = "N" * (protobuf.LONGEST_TEXT + 1)
    assert not found(tmp_path, graph({"x": [long]}, {"y": [long]}))


SMALL = graph({"x": ["N", 3]}, {"y": ["N", 3]}).SerializeToString()


@given(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=4))
@settings(max_examples=300)
def test_a_damaged_graph_has_one_or_none(tmp_path_factory: pytest.TempPathFactory, place: int, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "any").write_bytes(SMALL[:place] + content + SMALL[place + len(content) :])
    assert has_batch_dimension(folder, "any") in (True, False)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""
    return bytes([number << 3 | 2, len(content)]) + content


def saved_model(**shapes: bytes) -> bytes:
    """A SavedModel whose signature has an input and an output of these TensorShapeProtos."""
    tensors = {
        name: field(1, name.encode()) + field(2, field(3, shape)) if shape else field(2, b"")
        for name, shape in shapes.items()
    }
    signature = field(1, tensors["input"]) + field(2, tensors["output"])
    return b"\x08\x01" + field(2, field(5, field(1, b"serving_default") + field(2, signature)))


OPEN, FIVE = field(2, b"\x08" + b"\xff" * 9 + b"\x01"), field(2, b"\x08\x05")


@pytest.mark.parametrize(
    ("first", "second", "batched"),
    [
        (OPEN + FIVE, OPEN, True),
        (OPEN, FIVE + OPEN, False),
        (FIVE, OPEN, False),
        (OPEN, b"", False),
        (OPEN, field(2, b""), False),
        (OPEN, b"\x18\x01", False),
    ],
    ids=["open", "fixed output", "fixed input", "no shape", "size 0", "unknown rank"],
)
def test_the_signature_of_a_savedmodel_tells(tmp_path: Path, first: bytes, second: bytes, batched: bool) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export/saved_model.pb").write_bytes(saved_model(input=first, output=second))
    assert has_batch_dimension(tmp_path, "export") is batched


def test_the_source_tells_it_of_the_models_that_are_asked_for(mount: Path) -> None:
    layout.SOURCE_MOUNT.mkdir(exist_ok=True)
    (layout.SOURCE_MOUNT / "a.onnx").write_bytes(graph({"x": [1]}, {"y": [1]}).SerializeToString())
    (layout.SOURCE_MOUNT / "b.onnx").write_bytes(SMALL)
    request = SourceRequest("0" * 16, "pvc://models", "", "", ("b.onnx",), graphs=("b.onnx", "a.onnx"))
    result = source.run(request)
    assert (result.formats, result.batched, result.lengths) == (("onnx",), (True, False), ())


def test_the_source_tells_which_first_axis_seems_to_be_a_length(mount: Path) -> None:
    layout.SOURCE_MOUNT.mkdir(exist_ok=True)
    model = graph({"x": ["seq", "batch"]}, {"y": ["seq", "batch"]})
    (layout.SOURCE_MOUNT / "a.onnx").write_bytes(model.SerializeToString())
    (layout.SOURCE_MOUNT / "b.onnx").write_bytes(SMALL)
    result = source.run(SourceRequest("0" * 16, "pvc://models", "", "", (), graphs=("a.onnx", "b.onnx")))
    assert (result.batched, result.lengths) == ((True, True), (True, False))


def test_a_file_of_zeros_has_no_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights may begin with so many: each pair of them would be a field of the number 0."""
    monkeypatch.setattr(protobuf, "MOST_FIELDS", 10)
    file = tmp_path / "weights.bin"
    file.write_bytes(bytes(100))
    with protobuf.opened(file) as message, pytest.raises(ValueError, match="number 0"):
        list(message.fields())
