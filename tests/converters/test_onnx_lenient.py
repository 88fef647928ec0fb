"""What ONNX Runtime runs is served, also where onnx's own checker refuses it: the runtime judges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper, numpy_helper
from tritonclient.grpc import model_config_pb2

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.test_onnx_files import LOADER, REQUEST
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest, Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.results import ConvertResult

FLOAT = TensorProto.FLOAT
X = numpy.array([[1.5, -2.0, 3.0], [1.0, 2.0, -0.5]], numpy.float32)


@pytest.fixture
def serve(mount: Path) -> Callable[..., ConvertResult]:
    """Publishes a model with a batch, and runs the stages reference and convert."""

    def run(model: Any, precision: str, max_batch_size: int = 4, **batch: Any) -> ConvertResult:
        source = layout.source_directory(REQUEST.source)
        source.mkdir(parents=True)
        (source / "model.onnx").write_bytes(model.SerializeToString())
        numpy.savez(source / "batch.npz", **(batch or {"x": X}))
        (source / "loader.py").write_text(LOADER)
        code, loader = ModelCode("onnx", Entrypoint("model.onnx", {}), max_batch_size), Entrypoint("loader.py", {})
        run_reference(ReferenceRequest(REQUEST.reference, REQUEST.source, code, loader, 64, needs_labels=False))
        fields = {**vars(REQUEST), "model": code, "precision": precision}
        return run_convert(ConvertRequest(**fields))

    return run


def value(name: str, shape: Any = ("n", 3), kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], *weights: Any, **settings: Any) -> Any:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    opsets = settings.pop("opsets", [helper.make_opsetid("", 17)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **settings)


def without_shape() -> Any:
    return model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x")], [value("y", None)])


def without_type() -> Any:
    """What onnx-graphsurgeon writes of an output by default."""
    return model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x")], [onnx.ValueInfoProto(name="y")])


def unsorted() -> Any:
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Abs", ["x"], ["a"])]
    return model_of(nodes, [value("x")], [value("y")])


def unsorted_around_a_branch() -> Any:
    """A branch reads what is computed outside after it."""
    nodes = [helper.make_node("Add", ["a", "x"], ["t"]), helper.make_node("Neg", ["t"], ["u"])]
    branch = helper.make_graph(nodes, "then", [], [value("u")])
    other = helper.make_graph([helper.make_node("Identity", ["a"], ["v"])], "else", [], [value("v")])
    outer = [
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=other),
        helper.make_node("Abs", ["x"], ["a"]),
    ]
    flag = numpy_helper.from_array(numpy.array(True), "flag")
    return model_of(outer, [value("x")], [value("y")], flag)


def without_the_domain_of_a_node() -> Any:
    nodes = [
        helper.make_node("Scaler", ["x"], ["a"], domain="ai.onnx.ml", offset=[1.0] * 3, scale=[2.0] * 3),
        helper.make_node("Neg", ["a"], ["y"]),
    ]
    return model_of(nodes, [value("x")], [value("y")])


def without_onnx_s_own_domain() -> Any:
    model = without_the_domain_of_a_node()
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def without_input_shape() -> Any:
    return model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x", None)], [value("y")])


CASES = {
    each.__name__: each
    for each in (
        without_shape,
        without_type,
        unsorted,
        unsorted_around_a_branch,
        without_the_domain_of_a_node,
        without_onnx_s_own_domain,
        without_input_shape,
    )
}


def config() -> Any:
    path = model_file(REQUEST.key, "small", "onnx").parents[1] / "config.pbtxt"
    return text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())


def served() -> Any:
    return onnxruntime.InferenceSession(str(model_file(REQUEST.key, "small", "onnx")))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", CASES)
def test_what_the_runtime_runs_is_served(serve: Callable[..., ConvertResult], name: str, precision: str) -> None:
    model = CASES[name]()
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]
    serve(model, precision)
    session = served()
    numpy.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-3)
    # Triton compares these with config.pbtxt, and refuses a tensor without a shape.
    assert [len(each.shape) for each in (*session.get_inputs(), *session.get_outputs())] == [2, 2]
    dims = {each.name: [*each.dims] for each in (*config().input, *config().output)}
    for each in (*session.get_inputs(), *session.get_outputs()):
        assert dims[each.name] == [size if isinstance(size, int) else -1 for size in each.shape[1:]]


@pytest.mark.parametrize(("opset", "written"), [(17, 10), (21, 10), (23, 11)])
def test_a_file_is_of_a_format_that_older_servers_read(
    serve: Callable[..., ConvertResult], opset: int, written: int
) -> None:
    """onnx writes its newest version by default, which a server refuses whose ONNX Runtime is older."""
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    model = model_of(nodes, [value("x")], [value("y")], opsets=[helper.make_opsetid("", opset)])
    model.ir_version = 11
    serve(model, "fp32")
    assert onnx.load(str(model_file(REQUEST.key, "small", "onnx"))).ir_version == written


def test_an_output_that_the_graph_says_nothing_of_is_open(serve: Callable[..., ConvertResult]) -> None:
    """Another request may give another size than those of the reference."""
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    serve(model_of(nodes, [value("x", [2, 3])], [value("y", None, TensorProto.INT64)]), "fp32", 0)
    assert [*config().output[0].dims] == [2, -1]


def test_an_input_of_no_elements_is_open(serve: Callable[..., ConvertResult]) -> None:
    """Axes as an input, of which there are none: the sum is that of all."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)]
    model = model_of(nodes, [value("x", [2, 3]), value("axes", [0], TensorProto.INT64)], [value("y", [1, 1])])
    serve(model, "fp32", 0, x=X, axes=numpy.zeros(0, numpy.int64))
    assert {each.name: [*each.dims] for each in config().input} == {"x": [2, 3], "axes": [-1]}


def returned_number() -> Any:
    """A weight that is a number, and that a node reads too, is an output."""
    nodes = [helper.make_node("Mul", ["x", "temperature"], ["y"])]
    number = numpy_helper.from_array(numpy.array(2.5, numpy.float32), "temperature")
    return model_of(nodes, [value("x")], [value("y"), value("temperature", [])], number)


def old_number() -> Any:
    """IR version 3 lists weights among the inputs."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["a"]), helper.make_node("ReduceSum", ["a"], ["y"], keepdims=0)]
    weight = numpy_helper.from_array(numpy.ones(3, numpy.float32), "w")
    model = model_of(
        nodes, [value("x"), value("w", [3])], [value("y", [])], weight, opsets=[helper.make_opsetid("", 9)]
    )
    model.ir_version = 3
    return model


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("make", [returned_number, old_number])
def test_a_scalar_that_nothing_computes_has_the_dimension_that_a_server_needs(
    serve: Callable[..., ConvertResult], make: Callable[[], Any], precision: str
) -> None:
    serve(make(), precision, 0)
    answers = {
        each.name: answer for each, answer in zip(served().get_outputs(), served().run(None, {"x": X}), strict=True)
    }
    reference = next(read_batches(layout.reference_directory(REQUEST.reference))).outputs
    for name, expected in reference.items():
        assert answers[name].shape == expected.shape
        assert expected.ndim
        numpy.testing.assert_allclose(answers[name], expected, rtol=1e-3)
