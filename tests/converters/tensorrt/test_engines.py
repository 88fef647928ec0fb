"""Real engines, built on the CPU by TensorRT-RTX through the code that builds TensorRT's: parsed, built, inspected."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto

from tests.converters.onnx_models import MODELS, Graph, inputs
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store import inspection
from triton_converters.claim_store.dump import Batch
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ModelConfig,
    ReferenceRequest,
    TensorRtOptions,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, Signature, Tensor
from triton_converters.convert import tensorrt_library
from triton_converters.convert.tensorrt_library import Library
from triton_converters.convert.trt import computed_types, profile_shapes
from triton_converters.gates.precision import weight_data_types

SOURCE, REFERENCE, REVISION = "d" * 64, "e" * 16, "1" * 16
GPU = "NVIDIA-L40S"
CODE = ModelCode("onnx", Entrypoint("model.onnx", {}), 4)
REQUEST = ConvertRequest(
    key=REVISION,
    conversion_key="c" * 16,
    source=SOURCE,
    reference=REFERENCE,
    model_name="engine",
    model=CODE,
    candidate="trt",
    format="trt",
    precision="fp32",
    accelerator="none",
    onnx_opset=0,
    onnx_exporter="TorchScript",
    onnx_optimized=False,
    tensorrt=TensorRtOptions(2**30, 3),
    gpu_product=GPU,
    engine_cache="",
    config=ModelConfig(1, "KIND_GPU", True, (2,), 0, False, False, {}),
    optimal_batch_size=2,
)
LOADER = """
import numpy

def get_dataloader_fn():
    def generate():
        for number in range({batches}):
            with numpy.load(f"{name}-{{number}}.npz") as batch:
                yield numpy.arange(len(next(iter(batch.values())))), dict(batch), None
    return generate
"""


@pytest.fixture
def refer(mount: Path) -> Callable[[Any, list[dict[str, Any]]], None]:
    """Publishes a model with its batches and runs the reference stage."""

    def run(model: Any, batches: list[dict[str, Any]]) -> None:
        source = layout.source_directory(SOURCE)
        source.mkdir(parents=True)
        onnx.save(model, str(source / "model.onnx"))
        for number, batch in enumerate(batches):
            numpy.savez(source / f"batch-{number}.npz", **batch)
        (source / "loader.py").write_text(LOADER.format(batches=len(batches), name="batch"))
        loader = Entrypoint("loader.py", {})
        run_reference(ReferenceRequest(REFERENCE, SOURCE, CODE, loader, 64, needs_labels=False))

    return run


def convert(**changes: Any) -> ConvertResult:
    shutil.rmtree(layout.candidate_directory(REQUEST.conversion_key), ignore_errors=True)
    shutil.rmtree(layout.revision_directory(REQUEST.key), ignore_errors=True)
    return run_convert(replace(REQUEST, **changes))


@pytest.mark.parametrize("name", MODELS)
def test_engines_of_real_architectures_in_both_precisions(
    library: Library, refer: Callable[..., None], name: str
) -> None:
    refer(MODELS[name](), [inputs(name, 3)])
    sizes = {}
    for precision, wanted in (("fp32", "FP32"), ("fp16", "FP16")):
        result = convert(precision=precision)
        assert result.data_types[0] == wanted
        assert result.tensorrt_version == library.version
        plan = model_file(REVISION, "engine", "trt")
        assert weight_data_types(plan, "trt") == result.data_types
        sizes[precision] = plan.stat().st_size
        found = inspection.read(plan.parent)
        assert found.gpu_product == GPU
        assert not any("HALF" in tensor for tensor in found.tensors), found.tensors
        config = (plan.parent.parent / "config.pbtxt").read_text()
        assert 'backend: "tensorrt"' in config
        assert "max_batch_size: 4" in config
    # Of the small ones, what is not weights outweighs them.
    if name == "resnet50":
        assert sizes["fp16"] < 0.55 * sizes["fp32"]


def test_an_fp32_engine_has_no_half_in_it(library: Library, refer: Callable[..., None]) -> None:
    refer(MODELS["unet3d"](), [inputs("unet3d")])
    assert convert().data_types == ("FP32",)


def test_the_profile_covers_every_dimension_that_varies(library: Library, refer: Callable[..., None]) -> None:
    longer = {"x": numpy.random.default_rng(5).standard_normal((1, 4, 16, 8, 12)).astype(numpy.float32)}
    refer(MODELS["unet3d"](), [inputs("unet3d", 3), longer])
    built: list[Any] = []
    build = tensorrt_library.build

    def spy(*arguments: Any) -> Any:
        built.append((arguments[2], build(*arguments)))
        return built[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorrt_library, "build", spy)
        convert(precision="fp16")
    shapes, engine = built[0]
    assert shapes == {"x": ((1, 4, 8, 8, 12), (2, 4, 8, 16, 12), (4, 4, 16, 16, 12))}
    ranges = "MinShape: [1,4,8,8,12], OptShape: [2,4,8,16,12], MaxShape: [4,4,16,16,12]"
    assert ranges in engine.layers


def test_a_model_whose_dimensions_are_all_fixed_needs_no_profile(library: Library, tmp_path: Path) -> None:
    graph = Graph()
    y = graph.add("Relu", graph.conv("x", 3, 8, 3))
    model = graph.model({"x": (TensorProto.FLOAT, [1, 3, 8, 8])}, {"y": (y, TensorProto.FLOAT, [1, 8, 8, 8])})
    onnx.save(model, str(tmp_path / "model.onnx"))
    shapes = {"x": ((1, 3, 8, 8), (1, 3, 8, 8), (1, 3, 8, 8))}
    engine = tensorrt_library.build(library, tmp_path / "model.onnx", shapes, TensorRtOptions(2**30, 3), b"")
    assert engine.tensors == ("x FLOAT [1, 3, 8, 8]", "y FLOAT [1, 8, 8, 8]")
    assert computed_types(engine.layers, "FP32") == ("FP32",)


def test_several_inputs_and_a_model_without_batch_dimension() -> None:
    def batch(tokens: int, ids: int) -> Batch:
        arrays = {"tokens": numpy.zeros((tokens, 3), numpy.int64), "scale": numpy.zeros((), numpy.float32)}
        return Batch(numpy.arange(ids), arrays, {}, {})

    signature = Signature((Tensor("tokens", "INT64", (-1, 3)), Tensor("scale", "FP32", ())), (), 0)
    shapes = profile_shapes([batch(7, 1), batch(2, 1), batch(7, 1)], signature, 0)
    assert shapes == {"tokens": ((2, 3), (7, 3), (7, 3)), "scale": ((), (), ())}


def test_unless_another_batch_size_is_asked_for_the_maximum_is_optimal() -> None:
    batch = Batch(numpy.arange(2), {"x": numpy.zeros((2, 5), numpy.float32)}, {}, {})
    signature = Signature((Tensor("x", "FP32", (5,)),), (), 64)
    assert profile_shapes([batch], signature, 0) == {"x": ((1, 5), (64, 5), (64, 5))}
    assert profile_shapes([batch], signature, 32) == {"x": ((1, 5), (32, 5), (64, 5))}


def test_a_node_that_tensorrt_does_not_take_is_named(library: Library, refer: Callable[..., None]) -> None:
    graph = Graph()
    y = graph.add("Det", "x")
    model = graph.model({"x": (TensorProto.FLOAT, ["batch", 3, 3])}, {"y": (y, TensorProto.FLOAT, ["batch"])})
    refer(model, [{"x": numpy.random.default_rng(0).standard_normal((3, 3, 3)).astype(numpy.float32)}])
    with pytest.raises(StageError) as caught:
        convert()
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert f"TensorRT {library.version} does not support node 'Det_0' (Det)" in caught.value.message
    assert not layout.candidate_directory(REQUEST.conversion_key).exists()


def test_a_build_that_fails_is_told_in_tensorrt_s_own_words(library: Library, tmp_path: Path) -> None:
    onnx.save(MODELS["transformer"](), str(tmp_path / "model.onnx"))
    shapes = {"tokens": ((4, 3), (2, 3), (1, 3))}  # the least is larger than the largest
    with pytest.raises(StageError) as caught:
        tensorrt_library.build(library, tmp_path / "model.onnx", shapes, TensorRtOptions(2**20, 0), b"")
    assert caught.value.reason is Reason.CONVERSION_FAILED
    assert f"TensorRT {library.version} built no engine" in caught.value.message


def test_without_tensorrt_the_reason_says_which_image_to_name(refer: Callable[..., None]) -> None:
    refer(MODELS["transformer"](), [inputs("transformer")])
    with pytest.raises(StageError) as caught:
        convert()
    assert caught.value.reason is Reason.TENSOR_RT_UNAVAILABLE
    assert "spec.conversion.image" in caught.value.message


def test_without_a_gpu_the_reason_says_so(tmp_path: Path) -> None:
    class Nothing:
        __version__ = "10.13.3.9"

        class ILogger:
            class Severity:
                ERROR, INTERNAL_ERROR = 1, 2

        @staticmethod
        def Builder(logger: Any) -> Any:  # noqa: N802 - TensorRT's name
            raise TypeError("pybind11::init(): factory function returned nullptr")

    with pytest.raises(StageError) as caught:
        tensorrt_library.build(Library(Nothing), tmp_path, {}, TensorRtOptions(1, 3), b"")
    assert caught.value.reason is Reason.TENSOR_RT_UNAVAILABLE
    assert caught.value.message.startswith("TensorRT 10.13.3.9 finds no GPU")
    assert "update the driver of the node" in caught.value.message
    assert "set spec.gpu" not in caught.value.message, "an object without it has no such candidate"


def test_a_strongly_typed_network_whose_graph_stayed_in_fp32_is_no_fp16_engine(
    library: Library, tmp_path: Path
) -> None:
    onnx.save(MODELS["transformer"](), str(tmp_path / "model.onnx"))
    shapes = {"tokens": ((1, 3), (2, 3), (4, 9))}
    engine = tensorrt_library.build(library, tmp_path / "model.onnx", shapes, TensorRtOptions(2**30, 0), b"")
    assert computed_types(engine.layers, "FP32") == ("FP32",)
    with pytest.raises(StageError) as caught:
        computed_types(engine.layers, "FP16")
    assert caught.value.reason is Reason.PRECISION_MISMATCH
    assert "no layer in FP16" in caught.value.message


def test_the_words_of_tensorrt_10_s_inspector_are_understood() -> None:
    lines = (
        "Name: conv1, LayerType: CaskConvolution, Inputs: [ { Name: a, Format/Datatype: Channel major FP16 format }],"
        " Outputs: [ { Name: b, Format/Datatype: Channel major FP16 format }]\n"
        "Name: out, LayerType: Reformat, Outputs: [ { Name: y, Format/Datatype: Row major linear FP32 }]\n"
    )
    assert computed_types(lines, "FP16") == ("FP16", "FP32")
    assert computed_types(lines, "FP32") == ("FP32", "FP16")


def test_the_timing_cache_lies_with_its_gpu_and_version(library: Library, refer: Callable[..., None]) -> None:
    """TensorRT-RTX keeps nothing in it; what a build gives is written whole and handed to the next build."""
    refer(MODELS["transformer"](), [inputs("transformer")])
    given: list[bytes] = []
    build = tensorrt_library.build

    def remembering(*arguments: Any) -> Any:
        given.append(arguments[4])
        return replace(build(*arguments[:4], b""), timing_cache=b"measured")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(layout.OBJECT, "digits")
        patch.setattr(tensorrt_library, "build", remembering)
        convert()
        convert()
    assert given == [b"", b"measured"]
    own = layout.objects_directory(layout.ROOT) / layout.object_name("", "digits")
    path = own / GPU / library.version / "timing.cache"
    assert path.read_bytes() == b"measured"
    assert [each.name for each in path.parent.iterdir()] == ["timing.cache"]


def test_a_plan_that_was_exchanged_is_noticed(library: Library, refer: Callable[..., None]) -> None:
    refer(MODELS["transformer"](), [inputs("transformer")])
    convert(precision="fp16")
    plan = model_file(REVISION, "engine", "trt")
    plan.unlink()
    plan.write_bytes(b"another engine")
    with pytest.raises(StageError) as caught:
        weight_data_types(plan, "trt")
    assert caught.value.reason is Reason.MODEL_LOAD_FAILED
