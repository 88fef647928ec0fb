"""INT8 by ONNX Runtime's own quantizer, from the request to the published file, and what the metrics leave out."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

from tests.converters.onnx_models import Graph, transformer
from tests.converters.run_stage import run_convert, run_metrics, run_reference
from tests.converters.test_onnx_files import REQUEST, REVISION, SOURCE
from triton_converters.claim_store.dump import read_batches, select
from triton_converters.claim_store.replay import read_reference, write_result
from triton_converters.claim_store.revision import model_file
from triton_converters.claim_store.served_outputs import FOLDER, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.accuracy import Threshold, judge
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    EnsembleCode,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
    Step,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import KeptOutputs, MetricsRequest
from triton_converters.contract.quantization import Quantization, Quantized, calibration
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, Environment, ProfileResult, Tensor
from triton_converters.convert import onnx_int8
from triton_converters.gates.precision import check_precision
from triton_converters.graph import scopes
from triton_converters.stages.convert import produce

FLOAT = TensorProto.FLOAT
DIGITS = Path(__file__).parents[2] / "manifests/samples/digits/digits.npz"
SAMPLES = 96
LOADER = """
import numpy
def get_dataloader_fn():
    arrays = dict(numpy.load("samples.npz"))
    def batches():
        count = len(next(iter(arrays.values())))
        for start in range(0, count, SIZE):
            rows = slice(start, start + SIZE)
            labels = {"right": numpy.arange(count)[rows]}
            yield numpy.arange(count)[rows], {name: array[rows] for name, array in arrays.items()}, labels
    return batches
"""
METRICS = """
class MetricsCalculator:
    def calc(self, *, ids, y_pred, x, y_real):
        return {"largest": float(y_pred["y"].max()), "samples": len(ids)}
"""
INT8 = replace(REQUEST, precision="int8", quantization=Quantization(32))


def digits(opset: int = 17) -> Any:
    """The network of the first example, with other weights: pictures [batch, 1, 8, 8] to logits [batch, 10]."""
    graph, channels = Graph(), 32
    x = graph.add("Relu", graph.conv("x", 1, channels, 3))
    for block in range(2):
        inner = graph.add("Relu", graph.conv(x, channels, channels, 3))
        x = graph.add("Relu", graph.add("Add", x, graph.conv(inner, channels, channels, 3)))
        if not block:
            x = graph.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = graph.add("Flatten", graph.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = graph.add("Gemm", x, graph.weight(4 * channels, 10), graph.weight(10))
    return graph.model({"x": (FLOAT, ["batch", 1, 8, 8])}, {"y": (x, FLOAT, ["batch", 10])}, opset)


def pictures() -> dict[str, Any]:
    with numpy.load(DIGITS) as data:
        return {"x": data["pictures"][:SAMPLES].reshape(-1, 1, 8, 8).astype(numpy.float32) / 16}


def outliers() -> Any:
    """A block of a transformer whose features hold outliers, so that a scale for the whole tensor loses the others."""
    graph, width = Graph(), 64
    spread = numpy.ones(width, numpy.float32)
    spread[0] = 1000
    x = graph.add("Mul", "x", graph.constant(spread))
    x = graph.add("Mul", x, graph.constant(1 / spread))
    x = graph.add("Add", x, graph.add("MatMul", x, graph.weight(width, width)))
    return graph.model({"x": (FLOAT, ["batch", 5, width])}, {"y": (x, FLOAT, ["batch", 5, width])})


def calm_transformer() -> Any:
    """The transformer with small biases, so that its answers vary with the tokens."""
    model = transformer()
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.ndim == 1 and values.dtype == numpy.float32 and values.std() > 0.3:
            tensor.CopyFrom(numpy_helper.from_array(values * numpy.float32(0.02), tensor.name))
    return model


def features() -> dict[str, Any]:
    return {"x": numpy.random.default_rng(2).standard_normal((SAMPLES, 5, 64)).astype(numpy.float32)}


def doubled() -> Any:
    graph = Graph()
    return graph.model({"x": (FLOAT, ["batch", 4])}, {"y": (graph.add("Erf", "x"), FLOAT, ["batch", 4])})


@pytest.fixture
def bring(mount: Path) -> Callable[..., None]:
    """Publishes a model with samples, and runs the reference stage."""

    def run(model: Any, samples: dict[str, Any], size: int = 16) -> None:
        source = layout.source_directory(SOURCE)
        (source / "models").mkdir(parents=True)
        onnx.save(model, str(source / "models" / "model.onnx"))
        numpy.savez(source / "samples.npz", **samples)
        (source / "metrics.py").write_text(METRICS)
        (source / "loader.py").write_text(LOADER.replace("SIZE", str(size)))
        code = ModelCode("onnx", Entrypoint("models/model.onnx", {}), 4)
        loader = Entrypoint("loader.py", {})
        run_reference(ReferenceRequest(REQUEST.reference, SOURCE, code, loader, SAMPLES, needs_labels=False))

    return run


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says how long the graphs take, so that no verdict depends on the machine: fp32 first, then those that pass."""

    def take(*milliseconds: float) -> None:
        def told(paths: Sequence[Path], data: Any) -> list[float]:
            return list(milliseconds[: len(paths)])

        monkeypatch.setattr(onnx_int8, "_milliseconds", told)

    return take


def convert(request: ConvertRequest = INT8) -> ConvertResult:
    for directory in (layout.candidate_directory(request.conversion_key), layout.revision_directory(request.key)):
        shutil.rmtree(directory, ignore_errors=True)
    return run_convert(request)


def refusal(request: ConvertRequest = INT8) -> StageError:
    with pytest.raises(StageError) as caught:
        convert(request)
    return caught.value


def figures(found: ConvertResult) -> Quantized:
    assert found.quantized is not None
    return found.quantized


def test_a_network_of_convolutions_wins(bring: Callable[..., None], times: Callable[..., None]) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    quantized = figures(convert())
    assert (quantized.method, quantized.speedup, quantized.calibration_samples) == ("Static", 4.0, 32)
    assert quantized.signal_to_noise is not None
    assert 30 <= quantized.signal_to_noise <= 60
    # Of the optimised graph, in which nothing computes in fp32 any more.
    assert (quantized.int8_operators, quantized.operators) == (6, 6)
    served = model_file(REVISION, "small", "onnx")
    assert check_precision(served, "onnx", "int8") in ((), ("FP32",))
    assert [each.name for each in onnx.load(str(served)).graph.input] == ["x"]


def test_an_image_that_cannot_infer_symbolic_shapes_quantizes_all_the_same(
    bring: Callable[..., None], times: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization.shape_inference", None)
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    quantized = figures(convert())
    assert (quantized.int8_operators, quantized.operators) == (6, 6)


def test_an_older_operator_set_is_raised(bring: Callable[..., None], times: Callable[..., None]) -> None:
    bring(digits(opset=12), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    convert()
    served = onnx.load(str(model_file(REVISION, "small", "onnx")))
    assert [each.version for each in served.opset_import if not each.domain] == [onnx_int8.OPSET]


SUFFIXES = (
    *("scale", "zero_point", "quantized", "QuantizeLinear_Input", "QuantizeLinear_Output"),
    *("DequantizeLinear_Input", "DequantizeLinear_Output", "output_scale", "output_quantized", "quant_scales_mul"),
)


def renamed(model: Any, names: dict[str, str]) -> Any:
    scopes.rename(model.graph, names)
    return model


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_the_quantizer_makes_clash_with_none_of_the_graph(
    bring: Callable[..., None], times: Callable[..., None], suffix: str
) -> None:
    weights = {each.name: f"x_{suffix}" for each in digits().graph.initializer if each.name == "c2"}
    bring(renamed(digits(), {**weights, "c3": f"c0_{suffix}", "Relu_1_out": f"Conv_0_out_{suffix}"}), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    quantized = figures(convert())
    assert (quantized.method, quantized.int8_operators, quantized.operators) == ("Static", 6, 6)
    served = onnx.load(str(model_file(REVISION, "small", "onnx"))).graph
    assert [each.name for each in (*served.input, *served.output)] == ["x", "y"]


def test_an_input_may_be_called_as_the_scale_of_another(bring: Callable[..., None], times: Callable[..., None]) -> None:
    graph = Graph()
    factor = graph.add("Mul", "x", "x_scale")
    y = graph.add("Add", graph.add("MatMul", factor, graph.weight(64, 64)), "x")
    dims = ["batch", 5, 64]
    bring(
        graph.model({"x": (FLOAT, dims), "x_scale": (FLOAT, ["batch", 1, 1])}, {"y": (y, FLOAT, dims)}),
        {**features(), "x_scale": numpy.linspace(1, 2, SAMPLES, dtype=numpy.float32).reshape(-1, 1, 1)},
    )
    times(2.0, 0.5, 0.8, 1.0)
    assert figures(convert()).int8_operators == 1
    served = onnx.load(str(model_file(REVISION, "small", "onnx"))).graph
    assert [each.name for each in served.input] == ["x", "x_scale"]


def test_where_a_scale_for_all_loses_most_another_method_serves(
    bring: Callable[..., None], times: Callable[..., None]
) -> None:
    bring(outliers(), features())
    times(2.0, 0.5, 1.0, 1.0)
    assert figures(convert()).method == "StaticProducts"


def test_a_transformer_that_calibration_breaks_is_served_with_ranges_of_each_request(
    bring: Callable[..., None], times: Callable[..., None]
) -> None:
    bring(calm_transformer(), {"tokens": numpy.random.default_rng(3).integers(1, 64, (SAMPLES, 11))})
    times(2.0, 1.0)
    quantized = figures(convert())
    assert (quantized.method, quantized.calibration_samples) == ("Dynamic", 0)
    # The products of two activations, which are no weights, stay in fp32.
    assert (quantized.int8_operators, quantized.operators) == (12, 16)


def test_what_is_no_faster_gains_nothing(bring: Callable[..., None], times: Callable[..., None]) -> None:
    bring(digits(), pictures())
    times(1.0, 0.99, 2.0, 1.0)
    refused = refusal()
    assert refused.reason is Reason.GAINS_NOTHING
    assert refused.message.startswith("INT8 gains nothing for this model on this processor: ")
    assert "static of all operators: 1.01 times as fast as fp32" in refused.message
    assert "static of Conv, MatMul and Gemm: 0.50 times as fast as fp32" in refused.message


def test_a_graph_without_products_gains_nothing(bring: Callable[..., None]) -> None:
    bring(doubled(), {"x": numpy.random.default_rng(0).standard_normal((SAMPLES, 4)).astype(numpy.float32)})
    assert "the graph has no operator that the quantizer knows" in refusal().message


def test_operators_that_are_left_out_stay_in_fp32(bring: Callable[..., None], times: Callable[..., None]) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    quantized = figures(convert(replace(INT8, quantization=Quantization(32, ("Gemm",)))))
    assert quantized.operators - quantized.int8_operators == 1


def products() -> Any:
    """A matrix product with a bias behind it, which ONNX Runtime makes one operator of, and a Gemm."""
    graph = Graph()
    x = graph.add("Relu", graph.add("Add", graph.add("MatMul", "x", graph.weight(4, 16)), graph.weight(16)))
    x = graph.add("Gemm", x, graph.weight(16, 4), graph.weight(4))
    return graph.model({"x": (FLOAT, ["batch", 4])}, {"y": (x, FLOAT, ["batch", 4])})


@pytest.mark.parametrize("method", [onnx_int8.METHODS[0], onnx_int8.METHODS[2]], ids=lambda each: each.name)
@pytest.mark.parametrize(("excluded", "int8"), [((), 2), (("MatMul",), 1), (("Gemm",), 1), (("Gemm", "MatMul"), 0)])
def test_what_is_fused_is_left_out_by_the_type_that_it_had(
    bring: Callable[..., None],
    times: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    method: onnx_int8.Method,
    excluded: tuple[str, ...],
    int8: int,
) -> None:
    monkeypatch.setattr(onnx_int8, "METHODS", (method,))
    bring(products(), {"x": numpy.random.default_rng(5).standard_normal((SAMPLES, 4)).astype(numpy.float32)})
    times(2.0, 0.5)
    request = replace(INT8, quantization=Quantization(32, excluded))
    if int8:
        quantized = figures(convert(request))
        assert quantized.int8_operators == int8
        assert quantized.operators == 2
    else:
        assert "the graph has no operator that the quantizer knows and that" in refusal(request).message


def test_operators_that_are_misspelt_are_named(bring: Callable[..., None], times: Callable[..., None]) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    refused = refusal(replace(INT8, quantization=Quantization(32, ("Gemm", "Sofmax"))))
    assert refused.reason is Reason.CONVERSION_UNSUPPORTED
    assert refused.message.startswith("quantization.excludedOperators has Sofmax, which is no operator of ONNX")
    assert "the graph has Add, AveragePool, Conv, Flatten, Gemm" in refused.message


def test_operators_that_the_graph_does_not_have_are_told(
    bring: Callable[..., None], times: Callable[..., None]
) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    found = convert(replace(INT8, quantization=Quantization(32, ("Gemm", "Softmax"))))
    assert found.warnings == ("quantization.excludedOperators: the graph has no Softmax",)


def test_a_quantized_graph_is_not_quantized_again(bring: Callable[..., None], times: Callable[..., None]) -> None:
    graph = Graph()
    scale, zero = graph.constant(numpy.float32(0.1)), graph.constant(numpy.uint8(128))
    y = graph.add("DequantizeLinear", graph.add("QuantizeLinear", "x", scale, zero), scale, zero)
    y = graph.add("MatMul", y, graph.weight(4, 4))
    bring(
        graph.model({"x": (FLOAT, ["batch", 4])}, {"y": (y, FLOAT, ["batch", 4])}),
        {"x": numpy.random.default_rng(0).standard_normal((SAMPLES, 4)).astype(numpy.float32)},
    )
    refused = refusal()
    assert refused.reason is Reason.CONVERSION_UNSUPPORTED
    assert refused.message == (
        "the graph is quantized already (DequantizeLinear, QuantizeLinear): set precision to fp32, to serve it as it is"
    )


def test_a_single_sample_calibrates_nothing(bring: Callable[..., None]) -> None:
    bring(digits(), {"x": pictures()["x"][:1]})
    assert refusal().message == "the dataloader yields one sample, and calibration needs another: let it yield more"


def test_the_timing_is_of_each_graph_for_one_request(bring: Callable[..., None], tmp_path: Path) -> None:
    bring(digits(), pictures())
    source = layout.source_directory(SOURCE) / "models" / "model.onnx"
    data = onnx_int8._data(INT8, Quantization(32), form())
    one, other = onnx_int8._milliseconds([source, source], data)
    assert one > 0
    assert other > 0


def test_what_quantizes_is_judged_and_calibrated_by_different_samples(bring: Callable[..., None]) -> None:
    bring(digits(), pictures())
    data = onnx_int8._data(INT8, Quantization(32), form())
    judged = {int(each) for batch in data.judged for each in batch.ids}
    assert len(data.calibrating) == 32
    assert len(judged) == onnx_int8.JUDGED
    assert judged.isdisjoint(data.calibrating)
    assert [each["x"].shape for each in data.calibration_inputs()] == [(1, 1, 8, 8)] * 32


def kept_outputs(profile: str, file: Path) -> None:
    """What a profile keeps of a server's answers, here of ONNX Runtime's."""
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    batches = read_batches(layout.reference_directory(REQUEST.reference))
    answers = [row for batch in batches for row in session.run(["y"], dict(batch.inputs))[0]]
    directory = layout.measurement_directory(profile)
    directory.mkdir(parents=True)
    write_outputs(directory / FOLDER, [{"y": row} for row in answers])
    environment = Environment("2.51.0", "cpu", "", "", "", ())
    result = ProfileResult(True, "Passed", "", 0.0, len(answers), (), (), environment)
    write_result(directory, "profile", profile, result)


@pytest.mark.parametrize(("degradation", "reason"), [(100.0, Reason.PASSED), (1e-7, Reason.THRESHOLD_NOT_MET)])
def test_a_metric_of_the_other_samples_judges_the_graph(
    bring: Callable[..., None], times: Callable[..., None], degradation: float, reason: Reason
) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    convert()
    kept_outputs("a", model_file(REVISION, "small", "onnx"))
    result = run_metrics(
        MetricsRequest(
            key="f" * 16,
            source=SOURCE,
            reference=REQUEST.reference,
            model_format="onnx",
            max_batch_size=4,
            metrics=Entrypoint("metrics.py", {}),
            candidates=(KeptOutputs("a", "onnx", "int8"),),
            required=("largest",),
            calibration_samples=32,
        )
    )
    assert result.candidates[0].values[result.metrics.index("samples")] == SAMPLES - 32
    assert judge(result, "a", [Threshold("largest", None, None, degradation)]).reason is reason


@pytest.mark.parametrize(
    "lie",
    [
        {"method": "Magic"},
        {"int8_operators": 7},
        {"int8_operators": -1},
        {"calibration_samples": -5},
    ],
)
def test_figures_that_cannot_be_are_not_published(
    bring: Callable[..., None], times: Callable[..., None], monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any]
) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    quantize = onnx_int8.quantize
    monkeypatch.setattr(onnx_int8, "quantize", lambda *given: replace(quantize(*given), **lie))
    refused = refusal()
    assert refused.reason is Reason.CRASHED
    assert "an INT8 graph that cannot be" in refused.message


def test_a_file_in_fp32_is_not_published_as_int8(bring: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    bring(digits(), pictures())
    monkeypatch.setattr(onnx_int8, "quantize", lambda *_: Quantized("Static", 6, 6, 40.0, 2.0, 32))
    refused = refusal()
    assert refused.reason is Reason.PRECISION_MISMATCH
    assert refused.message == "model.onnx should be int8, but no operator is quantized"


def test_figures_of_int8_that_nobody_asked_for_are_not_published(
    bring: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(digits(), pictures())
    monkeypatch.setattr(produce, "_quantized", lambda *_: Quantized("Static", 6, 6, 40.0, 2.0, 32))
    assert "INT8 that was not asked for" in refusal(REQUEST).message


def form() -> Any:
    return read_reference(REQUEST.reference).signature


def of_ensemble(mount: Path, ensemble_batch: int, batches: int = 6, rows: int = 16) -> ConvertRequest:
    """Records an ensemble of two models with a batch dimension, and returns the request for the second one's INT8."""
    source = layout.source_directory(SOURCE)
    (source / "models").mkdir(parents=True)
    for name in ("first", "second"):
        graph = Graph()
        gemm = graph.add("Gemm", "x", graph.weight(16, 16), graph.weight(16))
        y = gemm if name == "second" else graph.add("Neg", "x")
        model = graph.model({"x": (FLOAT, ["batch", 16])}, {"y": (y, FLOAT, ["batch", 16])})
        onnx.save(model, str(source / "models" / f"{name}.onnx"))
    samples = numpy.random.default_rng(4).standard_normal((batches * rows, 16)).astype(numpy.float32)
    numpy.savez(source / "samples.npz", IN=samples)
    (source / "metrics.py").write_text(METRICS.replace('"y"', '"OUT"'))
    (source / "loader.py").write_text(LOADER.replace("SIZE", str(rows)))
    codes = {name: ModelCode("onnx", Entrypoint(f"models/{name}.onnx", {}), 64) for name in ("first", "second")}
    steps = (
        Step("first", {"x": "IN"}, {"y": "BETWEEN"}, codes["first"]),
        Step("second", {"x": "BETWEEN"}, {"y": "OUT"}, codes["second"]),
    )
    dims = (16,) if ensemble_batch else (-1, 16)
    code = EnsembleCode((Tensor("IN", "FP32", dims),), (Tensor("OUT", "FP32", dims),), steps)
    whole = ModelCode("ensemble", Entrypoint("", {}), ensemble_batch, code)
    loader = Entrypoint("loader.py", {})
    run_reference(ReferenceRequest(REQUEST.reference, SOURCE, whole, loader, SAMPLES, needs_labels=False))
    return replace(INT8, model=codes["second"], reference=layout.member_key(REQUEST.reference, "second"))


@pytest.mark.parametrize("ensemble_batch", [0, 64])
def test_what_calibrates_a_model_of_an_ensemble_is_left_out_of_the_metrics_of_the_ensemble(
    mount: Path, ensemble_batch: int
) -> None:
    request = of_ensemble(mount, ensemble_batch)
    data = onnx_int8._data(request, Quantization(32), read_reference(request.reference).signature)
    whole = layout.reference_directory(REQUEST.reference)
    samples = read_reference(REQUEST.reference).samples
    left_out = calibration(samples, 32)
    measured = list(select(read_batches(whole), ensemble_batch > 0, lambda number: number not in left_out))
    between = {(-row).tobytes() for each in measured for row in each.inputs["IN"]}
    calibrating = [each["x"][0].tobytes() for each in data.calibration_inputs()]
    judged = {row.tobytes() for batch in data.judged for row in batch.inputs["x"]}
    assert calibrating
    assert between.isdisjoint(calibrating)
    assert judged <= between


def test_the_log_has_the_figures(
    bring: Callable[..., None], times: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    bring(digits(), pictures())
    times(2.0, 0.5, 0.8, 1.0)
    convert()
    words = "small: 6 of 6 convolutions and matrix products run in INT8 (Static, 32 calibration samples), 4.00 times as"
    assert words in capsys.readouterr().out


def test_a_model_of_an_ensemble_without_a_sample_to_judge_by_is_not_quantized(mount: Path) -> None:
    request = of_ensemble(mount, 0, batches=1)
    with pytest.raises(StageError, match="the dataloader yields one sample"):
        onnx_int8._data(request, Quantization(32), read_reference(request.reference).signature)


def test_a_model_of_an_ensemble_without_a_sample_to_calibrate_by_is_not_quantized(mount: Path) -> None:
    request = of_ensemble(mount, 64)
    # Each of its requests holds samples that calibrate, and others that judge.
    whole_batches = replace(read_reference(request.reference).signature, max_batch_size=0)
    with pytest.raises(StageError, match=r"of the 2 samples .* of a model of an ensemble, 0 calibrate and 0 judge"):
        onnx_int8._data(request, Quantization(32), whole_batches)
