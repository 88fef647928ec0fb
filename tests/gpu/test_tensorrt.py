"""`make test-gpu`: the converters' TensorRT path with TensorRT proper, and ResNet-50 next to NVIDIA's A100 figures."""

from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest

from tests.converters.onnx_models import MODELS, inputs
from tests.gpu.engine import Engine
from triton_converters.claim_store.dump import Batch
from triton_converters.contract.conversion_requests import TensorRtOptions
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert import tensorrt_library
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.tensorrt_library import Library
from triton_converters.convert.trt import computed_types, profile_shapes

pytestmark = pytest.mark.gpu
OPTIONS = TensorRtOptions(workspace_bytes=4 * 2**30, builder_optimization_level=3)
TOLERANCE = {"fp32": 1e-3, "fp16": 3e-2}
"""The tolerance as a share of an output's largest magnitude."""
NVIDIAS_A100 = {1: 469.1, 2: 910.0, 4: 1447.6, 8: 2051.2, 16: 2760.0, 32: 2857.6, 64: 2534.4, 128: 2662.4}
"""Inferences a second by client batch size: NVIDIA, offline, 1x A100 80GB, ONNX Runtime with TensorRT, FP16."""
HEAD = "batch  inferences/s   P50 ms   P99 ms | NVIDIA's README, A100, through Triton: inferences/s"


def build(library: Library, name: str, precision: str, path: Path, max_batch_size: int) -> tensorrt_library.Engine:
    """The engine as the convert Job builds it."""
    model = MODELS[name]()
    onnx.save(to_fp16(model) if precision == "fp16" else model, str(path))
    example = inputs(name)
    batch = Batch(numpy.arange(2), example, {}, {})
    tensors = tuple(Tensor(key, "FP32", tuple(array.shape[1:])) for key, array in example.items())
    shapes = profile_shapes([batch], Signature(tensors, (), max_batch_size), 0)
    return tensorrt_library.build(library, path, shapes, OPTIONS, b"")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", MODELS)
def test_an_engine_computes_in_the_asked_precision_what_the_graph_computes(
    library: Library, torch: Any, tmp_path: Path, name: str, precision: str
) -> None:
    built = build(library, name, precision, tmp_path / "model.onnx", 4)
    assert computed_types(built.layers, {"fp32": "FP32", "fp16": "FP16"}[precision])
    if precision == "fp32":
        assert computed_types(built.layers, "FP32") == ("FP32",)
    plain = MODELS[name]().SerializeToString()
    session = onnxruntime.InferenceSession(plain, providers=["CPUExecutionProvider"])
    engine = Engine(library, torch, built.plan)
    for size in (1, 2):
        feed = {key: array[:size] for key, array in inputs(name).items()}
        answers = engine(feed)
        for output, expected in zip(session.get_outputs(), session.run(None, feed), strict=True):
            answer = answers[output.name]
            assert (answer.shape, answer.dtype) == (expected.shape, expected.dtype)
            scale = float(numpy.abs(expected).max())
            assert float(numpy.abs(answer - expected).max()) <= TOLERANCE[precision] * scale


def test_the_timing_cache_is_worth_keeping(library: Library, tmp_path: Path) -> None:
    assert build(library, "transformer", "fp16", tmp_path / "model.onnx", 4).timing_cache


def test_resnet50_in_fp16_next_to_nvidias_a100(
    library: Library, torch: Any, gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeded weights, the engine alone without a server: shown next to NVIDIA's figures, not ranked with them."""
    built = build(library, "resnet50", "fp16", tmp_path / "model.onnx", 128)
    engine = Engine(library, torch, built.plan)
    lines = [f"\nResNet-50 v1.5, fp16, {gpu}, TensorRT {library.version}, one call at a time, copies included", HEAD]
    image = numpy.random.default_rng(0).standard_normal((128, 3, 224, 224)).astype(numpy.float32)
    for size, nvidias in NVIDIAS_A100.items():
        seconds = engine.latencies({"x": image[:size]}, calls=100)
        middle, late = numpy.percentile(seconds, [50, 99]) * 1000
        throughput = size * len(seconds) / sum(seconds)
        lines.append(f"{size:5} {throughput:13.1f} {middle:8.3f} {late:8.3f} | {nvidias:.1f}")
        assert throughput > 0
    with capsys.disabled():
        print("\n".join(lines))
