"""A TorchScript file of a Triton repository: its config.pbtxt names the tensors, and the file is served as it is."""

from pathlib import Path

import pytest
import torch

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.torch.cases import REFERENCE, SOURCE, request
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor

pytestmark = pytest.mark.torch
FILE = "ocr/1/model.pt"
OUTPUTS = (Tensor("sum", "FP32", (4,)), Tensor("difference", "FP32", (4,)))


class Both(torch.nn.Module):
    """Two outputs, and two inputs that cannot be exchanged."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sum and difference."""
        return left + right, left - right


@pytest.fixture
def saved(mount: Path) -> Path:
    """The published file."""
    file = layout.source_directory(SOURCE) / FILE
    file.parent.mkdir(parents=True)
    torch.jit.script(Both().eval()).save(str(file))
    return file


def code(inputs: tuple[str, ...], outputs: tuple[Tensor, ...] = OUTPUTS) -> ModelCode:
    tensors = tuple(Tensor(name, "FP32", (4,)) for name in inputs)
    return ModelCode("ts-script", Entrypoint(FILE, {}), 4, declared=Signature(tensors, outputs, 4))


def refer(model: ModelCode) -> ReferenceResult:
    """The reference with generated inputs."""
    return run_reference(ReferenceRequest(REFERENCE, SOURCE, model, None, 64, needs_labels=False))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("right", "left"), ("left", "right")),
        (("b__1", "a__0"), ("a__0", "b__1")),
        (("one", "other"), ("one", "other")),
    ],
    ids=["arguments", "indices", "order"],
)
def test_names_mean_what_they_mean_to_triton(saved: Path, names: tuple[str, ...], order: tuple[str, ...]) -> None:
    found = refer(code(names))
    assert [each.name for each in found.signature.inputs] == list(order)
    assert found.signature.outputs == OUTPUTS
    batch = next(iter(read_batches(layout.reference_directory(REFERENCE))))
    left, right = (batch.inputs[name] for name in order)
    assert (batch.outputs["difference"] == left - right).all()


def test_the_file_is_served_as_it_is(saved: Path) -> None:
    model = code(("left", "right"))
    refer(model)
    asked = request(model, "ts-script")
    run_convert(asked)
    served = layout.model_repository(asked.key) / asked.model_name / "1" / "model.pt"
    assert served.read_bytes() == saved.read_bytes()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (code(("left",)), "name the positions 0, but the model's file has 2"),
        (code(("a__0", "b__2")), "name the positions 0, 2, but the model's file has 2"),
        (code(("left", "right"), OUTPUTS[:1]), "but the model's file has 2"),
        (code(("left", "right"), (OUTPUTS[0], Tensor("difference", "FP32", (5,)))), "declares difference as FP32[5]"),
    ],
)
def test_a_declaration_that_does_not_fit_says_so(saved: Path, model: ModelCode, words: str) -> None:
    with pytest.raises(StageError) as caught:
        refer(model)
    assert caught.value.reason is Reason.MODEL_CONFIG_REFUSED
    assert words in caught.value.message
