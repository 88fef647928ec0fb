"""Models in Python that cast inside, or return a number: what people write, and what torch alone would not serve."""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.torch.cases import REFERENCE, SOURCE, request, run_file
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.results import ConvertResult, ReferenceResult

pytestmark = pytest.mark.torch

LOADER = """
import numpy
def get_dataloader_fn(batch_size):
    r = numpy.random.default_rng(0)
    return lambda: iter([([*range(4)], {"x": r.random((4, 4), numpy.float32)}, None) for _ in range(3)])
"""
MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
    def forward(self, x):
        return %s
def get_model():
    torch.manual_seed(1)
    return Model().eval(), {"inputs": ["x"], "outputs": ["y"]}
"""
UPCAST = MODEL % "self.linear(x.float())"
NUMBER = MODEL % "self.linear(x).mean()"


@pytest.fixture
def serve(mount: Path) -> Callable[..., ConvertResult]:
    """Runs the stages reference and convert of a Python model, and compares what is served."""

    def run(
        text: str, target: str, precision: str = "fp32", batch: int = 4, exporter: str = "TorchScript"
    ) -> ConvertResult:
        source = layout.source_directory(SOURCE)
        source.mkdir(parents=True)
        (source / "model.py").write_text(text)
        (source / "loader.py").write_text(LOADER)
        code, loader = ModelCode("pyt", Entrypoint("model.py", {}), batch), Entrypoint("loader.py", {})
        asked = ReferenceRequest(REFERENCE, SOURCE, code, loader, 64, needs_labels=False)
        found: ReferenceResult = run_reference(asked)
        result = run_convert(request(code, target, precision, exporter, 18))
        for each in read_batches(layout.reference_directory(REFERENCE)):
            answer = run_file(target, each.inputs, found.signature)["y"]
            assert each.outputs["y"].ndim
            numpy.testing.assert_allclose(answer.reshape(each.outputs["y"].shape), each.outputs["y"], atol=2e-2)
        return result

    return run


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
def test_a_model_that_casts_to_fp32_inside_is_served_in_fp16(
    serve: Callable[..., ConvertResult], exporter: str
) -> None:
    """In fp16 torch multiplies no fp32 by fp16 weights; in the graph every cast becomes one to fp16."""
    result = serve(UPCAST, "onnx", "fp16", exporter=exporter)
    assert result.data_types[0] == "FP16"
    assert "the model does not run in fp16 in torch, so its graph is cast after the export" in result.warnings[0]


@pytest.mark.parametrize("target", ["ts-trace", "ts-script", "onnx"])
def test_a_number_that_a_model_returns_has_a_dimension(serve: Callable[..., ConvertResult], target: str) -> None:
    serve(NUMBER, target, batch=0)
