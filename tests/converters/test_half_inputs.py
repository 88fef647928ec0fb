"""float16 in and out as an ONNX graph declares it: from the reference to the gates, and where it stays refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from tests.converters.conversions import CONFIG, conversion
from tests.converters.onnx_models import Graph
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import Array, Arrays, read_all, read_batches
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, ServedModel
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, Signature
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.stages.reference import soundness

SOURCE, REFERENCE, REVISION = "d" * 64, "e" * 16, "1" * 16
CODE = ModelCode("onnx", Entrypoint("model.onnx", {}), 4)
REQUEST = conversion(
    CODE,
    key=REVISION,
    conversion_key="c" * 16,
    source=SOURCE,
    reference=REFERENCE,
    model_name="half",
    config=replace(CONFIG, warmup=True),
)
LOADER = """
import numpy
def get_dataloader_fn(batch_size):
    x = numpy.random.default_rng(1).normal(size=(16, 8)).astype(numpy.{kind})
    return lambda: iter([([*range(at, at + 4)], {{"x": x[at : at + 4]}}, None) for at in range(0, 16, 4)])
"""
WEIGHTS = numpy.random.default_rng(0).normal(size=(8, 8))


def of_halves() -> Any:
    """A layer that is float16 throughout."""
    graph = Graph()
    y = graph.add("Tanh", graph.add("MatMul", "x", graph.constant(WEIGHTS.astype(numpy.float16))))
    return graph.model({"x": (TensorProto.FLOAT16, ["n", 8])}, {"y": (y, TensorProto.FLOAT16, ["n", 8])})


def of_singles() -> Any:
    """The same in float32 between float16."""
    graph = Graph()
    wide = graph.add("Cast", "x", to=TensorProto.FLOAT)
    product = graph.add("Tanh", graph.add("MatMul", wide, graph.constant(WEIGHTS.astype(numpy.float32))))
    y = graph.add("Cast", product, to=TensorProto.FLOAT16)
    return graph.model({"x": (TensorProto.FLOAT16, ["n", 8])}, {"y": (y, TensorProto.FLOAT16, ["n", 8])})


GRAPHS = {"halves": of_halves, "singles": of_singles}


def refer(model: Any, kind: str = "float16") -> Signature:
    """Publish a model with a dataloader of that type, and run the reference stage."""
    source = layout.source_directory(SOURCE)
    source.mkdir(parents=True)
    onnx.save(model, str(source / "model.onnx"))
    (source / "loader.py").write_text(LOADER.format(kind=kind))
    request = ReferenceRequest(REFERENCE, SOURCE, CODE, Entrypoint("loader.py", {}), 64, needs_labels=False)
    return run_reference(request).signature


def served(made: ConvertResult, signature: Signature, off: float = 0.0) -> ServedCandidate:
    """The candidate on ONNX Runtime, which answers with errors of about ``off``."""
    path, home = model_file(REVISION, "half", "onnx"), layout.reference_directory(REFERENCE)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(2)

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        (y,) = session.run(None, dict(inputs))
        return {"y": (y + off * random.standard_normal(y.shape)).astype(y.dtype)}

    tolerance = DEFAULT_TOLERANCES["fp32"]
    return ServedCandidate(
        declared=lambda: signature,
        infer=infer,
        signature=signature,
        precision="fp32",
        tolerance=tolerance,
        scales=lambda: scales_of(read_all(home), True, tolerance, "fp32"),
        batches=read_batches(home),
        sizes=(),
        files=[(path, ServedModel("half", "onnx", "fp32"))],
        keep_outputs=False,
        published_types=made.data_types,
        engine_caches=(),
    )


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_inputs_and_outputs_stay_halves_in_every_candidate(mount: Path, name: str, precision: str) -> None:
    signature = refer(GRAPHS[name]())
    assert [each.data_type for each in (*signature.inputs, *signature.outputs)] == ["FP16", "FP16"]
    made = run_convert(replace(REQUEST, precision=precision))
    graph = onnx.load(str(model_file(REVISION, "half", "onnx"))).graph
    assert {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)} == {TensorProto.FLOAT16}
    is_half = name == "halves" or precision == "fp16"
    assert made.data_types[0] == ("FP16" if is_half else "FP32")
    folder = layout.model_repository(REVISION) / "half"
    assert (folder / "config.pbtxt").read_text().count("data_type: TYPE_FP16") >= 2
    first = next(iter(read_batches(layout.reference_directory(REFERENCE)))).inputs["x"]
    (warmup,) = (folder / "warmup").iterdir()
    assert numpy.frombuffer(warmup.read_bytes(), numpy.float16)[:8].tolist() == first[0].tolist()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("off", "passes"), [(0.0, True), (5e-4, True), (0.1, False)])
def test_an_output_of_halves_is_judged_as_one_that_rounds_to_halves(
    mount: Path, name: str, off: float, passes: bool
) -> None:
    """Half a unit in the last place of float16 is several times the tolerance of fp32."""
    signature = refer(GRAPHS[name]())
    failed = judge(served(run_convert(REQUEST), signature, off))
    assert (failed is None) is passes, failed


def test_a_dataloader_of_another_type_is_told_which_one(mount: Path) -> None:
    with pytest.raises(StageError, match=r"x is float32, but the model takes float16; add \.astype") as caught:
        refer(of_halves(), kind="float32")
    assert caught.value.reason is Reason.DATALOADER_INVALID


def test_a_weight_in_halves_needs_no_input_in_halves(mount: Path) -> None:
    graph = Graph()
    half = graph.add("MatMul", graph.add("Cast", "x", to=TensorProto.FLOAT16), graph.constant(WEIGHTS.astype("f2")))
    y = graph.add("Cast", half, to=TensorProto.FLOAT)
    model = graph.model({"x": (TensorProto.FLOAT, ["n", 8])}, {"y": (y, TensorProto.FLOAT, ["n", 8])})
    with pytest.raises(StageError, match=r"x is float16, but the model takes float32"):
        refer(model)


@pytest.mark.parametrize("size", [60000.0, 1.0])
def test_large_halves_are_compared_without_overflow(size: float) -> None:
    one = {"y": numpy.array([[size, -size]], numpy.float16)}
    other = {"y": numpy.array([[-size, size]], numpy.float16)}
    assert soundness.disagreement(one, one) is None
    words = soundness.disagreement(one, other)
    assert words is not None
    assert f"largest difference {2 * size:.3g} in values" in words


def test_other_sources_say_that_they_have_no_halves() -> None:
    with pytest.raises(StageError, match="output y is float16, which only ONNX graphs and Python steps may have"):
        soundness.check_types({"y": numpy.zeros(1, numpy.float16)}, halves=False)
    soundness.check_types({"y": numpy.zeros(1, numpy.float16)}, halves=True)
