"""In which ways a model is exported to ONNX, where the first one mixes devices: no GPU is needed to tell."""

from collections.abc import Callable

import pytest
import torch

from triton_converters.contract.results import ConvertResult
from triton_converters.convert import torch_onnx
from triton_converters.convert.torch_onnx import Try, first_that_works, tries

pytestmark = pytest.mark.torch
Convert = Callable[..., ConvertResult]
MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
CUDA, CPU = torch.device("cuda"), torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "exporter", "expected"),
    [
        (CPU, "TorchScript", [(CPU, True)]),
        (CPU, "Dynamo", [(CPU, True)]),
        (CUDA, "TorchScript", [(CUDA, True), (CUDA, False), (CPU, True)]),
        (CUDA, "Dynamo", [(CUDA, True), (CPU, True)]),
    ],
)
def test_on_a_gpu_an_export_that_mixes_devices_is_tried_otherwise(
    device: torch.device, exporter: str, expected: list[tuple[torch.device, bool]]
) -> None:
    given: list[Try] = []

    def export(way: Try) -> None:
        given.append(way)
        raise RuntimeError(f"{MIXED} in try {len(given)}")

    with pytest.raises(RuntimeError, match=f"in try {len(expected)}"):
        first_that_works(tries(device, exporter), export)
    assert given == [Try(*each) for each in expected]


def test_the_first_way_that_works_is_the_last_that_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    given: list[Try] = []

    def export(way: Try) -> None:
        given.append(way)
        if way.folds:
            raise RuntimeError(MIXED)

    first_that_works(tries(CUDA, "TorchScript"), export)
    assert given == [Try(CUDA, True), Try(CUDA, False)]
    assert MIXED in capsys.readouterr().out


def test_another_failure_is_told_at_once() -> None:
    given: list[Try] = []

    def export(way: Try) -> None:
        given.append(way)
        raise RuntimeError("Exporting the operator 'aten::fft' to ONNX opset version 17 is not supported")

    with pytest.raises(RuntimeError, match="aten::fft"):
        first_that_works(tries(CUDA, "TorchScript"), export)
    assert len(given) == 1


@pytest.mark.parametrize("folds", [True, False])
def test_a_graph_that_was_not_folded_answers_the_same(
    convert: Convert, monkeypatch: pytest.MonkeyPatch, folds: bool
) -> None:
    monkeypatch.setattr(torch_onnx, "tries", lambda device, exporter: (Try(device, folds),))
    error = convert("Classifier", "onnx").max_absolute_error
    assert error is not None
    assert error < 1e-5
