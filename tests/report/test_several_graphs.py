"""What is said of a folder with several graphs, which may be an encoder and its decoder."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from triton_plugin.drafting.model_folder import read
from triton_plugin.errors import FolderError


def a_graph(path: Path, inputs: dict[str, list[int | str]], outputs: dict[str, list[int | str]]) -> None:
    """An ONNX file that declares these, in FP32."""
    given, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in side.items()]
        for side in (inputs, outputs)
    )
    nodes = [helper.make_node("Identity", [next(iter(inputs))], [name]) for name in outputs]
    path.write_bytes(helper.make_model(helper.make_graph(nodes, "net", given, made)).SerializeToString())


def test_several_graphs_are_shown_with_what_may_connect_them(tmp_path: Path) -> None:
    a_graph(tmp_path / "encoder.onnx", {"pixels": ["n", 3, 224, 224]}, {"features": ["n", 64], "mask": ["n"]})
    a_graph(tmp_path / "decoder.onnx", {"features": ["batch", 64], "mask": ["n", 1]}, {"bad\nname": ["n", "k"]})
    with pytest.raises(FolderError) as refusal:
        read(tmp_path)
    assert str(refusal.value).splitlines() == [
        f"{tmp_path} contains several models: decoder.onnx (onnx), encoder.onnx (onnx); choose one: --model PATH",
        "To serve all of them as one, write an object with each in spec.models, and connect them in spec.ensemble,"
        " one step each (docs/ensembles.md). They declare:",
        "  decoder.onnx: features FP32[-1,64] (as from encoder.onnx), mask FP32[-1,1] -> bad name FP32[-1,-1]",
        "  encoder.onnx: pixels FP32[-1,3,224,224] -> features FP32[-1,64], mask FP32[-1]",
    ]
    (tmp_path / "other.onnx").write_bytes(b"\x08\x0a:\x02Z\x00")
    with pytest.raises(FolderError, match=r"choose one: --model PATH$"):
        read(tmp_path)
    assert read(tmp_path, "encoder.onnx").model.path == "encoder.onnx"


def test_a_type_or_shape_that_a_graph_does_not_tell_connects_nothing(tmp_path: Path) -> None:
    for name, (given, made) in {"a.onnx": ("x", "h"), "b.onnx": ("h", "y")}.items():
        first, last = ([helper.make_tensor_value_info(each, TensorProto.COMPLEX64, None)] for each in (given, made))
        graph = helper.make_graph([helper.make_node("Identity", [given], [made])], "net", first, last)
        (tmp_path / name).write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(FolderError) as refusal:
        read(tmp_path)
    shown = str(refusal.value).splitlines()[-2:]
    assert shown == [
        "  a.onnx: x of an unknown type -> h of an unknown type",
        "  b.onnx: h of an unknown type -> y of an unknown type",
    ]
