"""Tensors of a plain file that cannot be served, by their names or types: the message says which, and what to do."""

import hashlib
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.converters.run_stage import run_reference
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reason_kinds import Containers
from triton_converters.contract.reasons import Reason, found_by
from triton_converters.load import framework
from triton_converters.load.usable_names import LONGEST, fault

CODE = ModelCode("onnx", Entrypoint("m.onnx", {}), 4)


def save(folder: Path, inputs: list[str], outputs: list[str]) -> None:
    """Save a graph that copies its first input to each output that is no input."""
    values = [
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["N", 4]) for each in side]
        for side in (inputs, outputs)
    ]
    nodes = [helper.make_node("Identity", [inputs[0]], [each]) for each in dict.fromkeys(outputs) if each not in inputs]
    graph = helper.make_graph(nodes, "g", *values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())


def load(folder: Path, inputs: list[str], outputs: list[str]) -> framework.Framework:
    save(folder, inputs, outputs)
    return framework.load(folder, CODE, "onnx")


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        (["x"], ["x"], "'x' is an input and an output: give the output its own name"),
        (["x"], ["x", "y"], "'x' is an input and an output"),
        (["x"], ["y\nz"], r"the name of output 'y\nz' must have"),
        (["a\x1b[31m"], ["y"], r"the name of input 'a\x1b[31m' must have"),
        (["x"], ["y" * 252], f"must have 1 to {LONGEST} printable characters: rename it"),
    ],
)
def test_a_file_with_such_names_is_refused_with_what_to_do(
    tmp_path: Path, inputs: list[str], outputs: list[str], words: str
) -> None:
    with pytest.raises(StageError) as caught:
        load(tmp_path, inputs, outputs)
    assert (caught.value.reason, caught.value.final) == (Reason.CHECKPOINT_INVALID, True)
    assert caught.value.message.startswith("m.onnx: ")
    assert words in caught.value.message
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
def test_a_file_that_onnx_runtimes_optimizer_saved_is_called_so(tmp_path: Path, domain: str) -> None:
    save(tmp_path, ["x"], ["y"])
    model = onnx.load(str(tmp_path / "m.onnx"))
    model.graph.node[0].domain = domain
    model.opset_import.append(helper.make_opsetid(domain, 1))
    onnx.save(model, str(tmp_path / "m.onnx"))
    with pytest.raises(StageError) as caught:
        framework.load(tmp_path, CODE, "onnx")
    assert caught.value.reason is Reason.CHECKPOINT_INVALID
    assert caught.value.message == (
        "m.onnx was saved by ONNX Runtime's optimizer, for the processor that it ran on: give the file from before,"
        " without SessionOptions.optimized_model_filepath"
    )


def test_more_names_than_a_result_holds_are_refused_before_the_model_runs(mount: Path) -> None:
    """A table of many columns, each an input of its own."""
    source = layout.source_directory("d" * 64)
    source.mkdir(parents=True)
    save(source, [hashlib.sha256(bytes([number])).hexdigest() for number in range(150)], ["y"])
    with pytest.raises(StageError) as caught:
        run_reference(ReferenceRequest("1" * 16, "d" * 64, CODE, None, 64, needs_labels=False))
    assert (caught.value.reason, caught.value.final) == (Reason.CHECKPOINT_INVALID, True)
    assert "m.onnx has 150 inputs and 1 outputs, whose names do not fit into a Job's result" in caught.value.message
    assert "give the model fewer inputs and outputs" in caught.value.message


def test_names_that_frameworks_make_are_taken(tmp_path: Path) -> None:
    names = ["serving_default_x:0", "model/dense/BiasAdd:0", "é", "y" * LONGEST]
    assert load(tmp_path, ["x.1 (float)"], names).outputs == tuple(names)


def test_names_of_code_may_be_given_twice_or_not_at_all() -> None:
    assert "has the output 'y' twice" in fault(["x"], ["y", "y"])
    assert "it has no input" in fault([], ["y"])
    assert fault(["x"], ["y"]) == ""
    assert {Reason.CHECKPOINT_INVALID, Reason.ENTRYPOINT_INVALID} <= found_by(Containers.USER_CODE)


FLOAT = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 4])
UNHELD = {
    "a sequence as an input": (
        helper.make_sequence_type_proto(FLOAT),
        FLOAT,
        helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0),
        "input x is a sequence, seq(tensor(float))",
    ),
    "an optional input": (
        helper.make_optional_type_proto(FLOAT),
        FLOAT,
        helper.make_node("OptionalGetElement", ["x"], ["y"]),
        "input x is optional, optional(tensor(float))",
    ),
    "a sequence as an output": (
        FLOAT,
        helper.make_sequence_type_proto(FLOAT),
        helper.make_node("SequenceConstruct", ["x", "x"], ["y"]),
        "output y is a sequence",
    ),
    "an output of bfloat16": (
        FLOAT,
        helper.make_tensor_type_proto(TensorProto.BFLOAT16, ["N", 4]),
        helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16),
        "output y is bfloat16, which NumPy does not have",
    ),
    "an output of float8, which ONNX Runtime gives as bytes": (
        FLOAT,
        helper.make_tensor_type_proto(TensorProto.FLOAT8E4M3FN, ["N", 4]),
        helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN),
        "export the model with a float32 output",
    ),
}


@pytest.mark.parametrize("name", UNHELD)
def test_what_no_dataloader_can_give_is_said_without_one(tmp_path: Path, name: str) -> None:
    taken, given, node, words = UNHELD[name]
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", taken)], [helper.make_value_info("y", given)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(StageError) as caught:
        framework.load(tmp_path, ModelCode("onnx", Entrypoint("m.onnx", {}), 4), "onnx")
    assert (caught.value.reason, caught.value.final) == (Reason.CHECKPOINT_INVALID, True)
    assert f"m.onnx: {words}" in caught.value.message or words in caught.value.message
    assert "write a dataloader" not in caught.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "its weights are in 'm.onnx.data', which is not next to it: push the folder with both files"),
        (b"version https://git-lfs.github.com/spec/v1\n", "which is a pointer of Git LFS in place of the file: fetch"),
        (b"cut", "which has 3 of at least 64 bytes: copy or download it again"),
    ],
)
def test_weights_that_are_not_there_are_named_by_their_file(tmp_path: Path, content: bytes | None, words: str) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], bytes(64), raw=True)
    values = [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["N", 4]) for each in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    code = ModelCode("onnx", Entrypoint("m.onnx", {}), 4)
    assert framework.load(tmp_path, code, "onnx").inputs == ("x",)
    (tmp_path / "m.onnx.data").unlink()
    if content is not None:
        (tmp_path / "m.onnx.data").write_bytes(content)
    with pytest.raises(StageError) as caught:
        framework.load(tmp_path, code, "onnx")
    assert (caught.value.reason, caught.value.final) == (Reason.CHECKPOINT_INVALID, True)
    assert words in caught.value.message
