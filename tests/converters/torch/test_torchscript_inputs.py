"""What a TorchScript file takes besides tensors: arguments with a default, and one dictionary of all inputs."""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.torch.cases import REFERENCE, SOURCE, request, run_file
from triton_converters.claim_store.dump import read_batches
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load import torchscript

pytestmark = pytest.mark.torch


class Masked(torch.nn.Module):
    """As models of text are scripted."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, scale: float = 2.0) -> torch.Tensor:
        if mask is not None:
            x = x * mask
        return x * scale


class Named(torch.nn.Module):
    """As recommenders take their features."""

    def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
        return features["left"] - 2 * features["right"]


class Listed(torch.nn.Module):
    def forward(self, xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0]


class Mean(torch.nn.Module):
    """Returns a number, as a score of a whole request is."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.mean(), x * 2


class Noisy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class Halved(torch.nn.Module):
    """Has fp16 weights, and casts what goes in and out, as one writes it for GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(4, 4, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.half() * self.weights.sum(0)).float()


Publish = Callable[..., ModelCode]


@pytest.fixture
def publish(mount: Path) -> Publish:
    """Publishes a scripted module; ``inputs``: the names that a config.pbtxt declares, if there is one."""

    def run(module: torch.nn.Module, inputs: str = "", outputs: str = "y", batch: int = 4) -> ModelCode:
        source = layout.source_directory(SOURCE)
        source.mkdir(parents=True)
        torch.jit.script(module.eval()).save(str(source / "model.pt"))
        names = (inputs or "INPUT__0").split()
        loader = (
            "import numpy\n"
            "def get_dataloader_fn(batch_size):\n"
            "    r = numpy.random.default_rng(0)\n"
            "    make = lambda: r.random((4, 4), numpy.float32)\n"
            f"    return lambda: iter([([*range(4)], {{name: make() for name in {names!r}}}, None)])\n"
        )
        (source / "loader.py").write_text(loader)
        shape = (4,) if batch else (4, 4)
        tensors = tuple(Tensor(name, "FP32", shape) for name in names)
        answers = tuple(Tensor(name, "FP32", (1,) if name == "mean" else shape) for name in outputs.split())
        declared = Signature(tensors, answers, batch) if inputs else None
        return ModelCode("ts-script", Entrypoint("model.pt", {}), batch, declared=declared)

    return run


def refer(code: ModelCode) -> ReferenceResult:
    loader = Entrypoint("loader.py", {})
    return run_reference(ReferenceRequest(REFERENCE, SOURCE, code, loader, 64, needs_labels=False))


def check(code: ModelCode, target: str, precision: str = "fp32") -> None:
    """The served file answers what the source's file answered."""
    signature = refer(code).signature
    run_convert(request(code, target, precision))
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        answers = run_file(target, batch.inputs, signature)
        for name, expected in batch.outputs.items():
            assert expected.ndim
            numpy.testing.assert_allclose(answers[name].reshape(expected.shape), expected, rtol=5e-3, atol=5e-3)


TARGETS = pytest.mark.parametrize(
    ("target", "precision"), [("ts-trace", "fp32"), ("ts-script", "fp32"), ("onnx", "fp32"), ("ts-script", "fp16")]
)


@TARGETS
def test_arguments_with_a_default_are_left_out(publish: Publish, target: str, precision: str) -> None:
    check(publish(Masked()), target, precision)


@TARGETS
def test_an_optional_tensor_that_config_pbtxt_names_is_an_input(publish: Publish, target: str, precision: str) -> None:
    check(publish(Masked(), "x mask"), target, precision)


@TARGETS
def test_one_dictionary_is_filled_by_the_names_of_config_pbtxt(publish: Publish, target: str, precision: str) -> None:
    check(publish(Named(), "right left"), target, precision)


@pytest.mark.parametrize("target", ["ts-trace", "ts-script", "onnx"])
def test_a_number_has_the_dimension_that_a_server_needs(publish: Publish, target: str) -> None:
    code = publish(Mean(), "x", "mean double", batch=0)
    check(code, target)


def test_fp16_weights_stay_as_they_are(publish: Publish) -> None:
    code = publish(Halved())
    refer(code)
    result = run_convert(request(code, "ts-script"))
    assert result.data_types[0] == "FP16"
    assert result.warnings[0] == "most weights of the file are FP16, and are served as they are"


def test_what_draws_random_numbers_is_named(publish: Publish) -> None:
    with pytest.raises(StageError) as caught:
        refer(publish(Noisy()))
    assert caught.value.reason is Reason.REFERENCE_NOT_REPRODUCIBLE
    assert caught.value.message.startswith("model.pt draws random numbers by aten::randn_like: give 0 for an input")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Named(), "forward takes a Dict[str, Tensor], whose keys the file does not tell; give the model's folder"),
        (Listed(), "forward takes List[Tensor] xs; only tensors can be served: give it a default, or wrap"),
    ],
    ids=["dictionary", "list"],
)
def test_what_cannot_be_given_says_what_helps(publish: Publish, module: torch.nn.Module, words: str) -> None:
    code = publish(module)
    with pytest.raises(StageError) as caught:
        torchscript.load(layout.source_directory(SOURCE), code, "onnx")
    assert caught.value.reason is Reason.ENTRYPOINT_INVALID
    assert words in caught.value.message
