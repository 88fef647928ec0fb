"""A model that was quantized dynamically scales by the whole batch: batching is refused by the operator's name."""

import hashlib

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.converters.run_stage import run_reference
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult

TOLD = "DynamicQuantizeLinear (node q) scales by the whole batch: quantize statically, or give the fp32 file and set"


def quantized(name: str = "q") -> onnx.ModelProto:
    """A linear layer as onnxruntime.quantization.quantize_dynamic writes it."""
    weights = numpy.random.default_rng(3).integers(-100, 100, (4, 3)).astype(numpy.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "scale", "zero"], name=name),
        helper.make_node("MatMulInteger", ["xq", "weights", "zero"], ["yq"]),
        helper.make_node("Cast", ["yq"], ["yf"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["yf", "scale"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, ["N", size]) for each, size in (("x", 4), ("y", 3)))
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "weights")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def refer(max_batch_size: int, model: onnx.ModelProto) -> ReferenceResult:
    content = model.SerializeToString()
    digest = hashlib.sha256(content).hexdigest()
    folder = layout.source_directory(digest)
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(content)
    code = ModelCode("onnx", Entrypoint("m.onnx", {}), max_batch_size)
    return run_reference(ReferenceRequest("e" * 16, digest, code, None, 32, needs_labels=False))


@pytest.mark.usefixtures("mount")
def test_batching_is_refused_by_the_operators_name() -> None:
    with pytest.raises(StageError) as caught:
        refer(8, quantized())
    assert caught.value.reason is Reason.BATCHING_UNSUPPORTED
    assert caught.value.message.startswith(TOLD)


@pytest.mark.usefixtures("mount")
def test_without_batches_a_warning_says_why() -> None:
    assert any(each.startswith(f"no batching: {TOLD}") for each in refer(0, quantized()).warnings)


@pytest.mark.usefixtures("mount")
def test_the_name_of_a_node_is_one_short_line() -> None:
    (told,) = [each for each in refer(0, quantized("q\n" * 900)).warnings if each.startswith("no batching")]
    assert told.isprintable()
    assert "precision int8" in told
