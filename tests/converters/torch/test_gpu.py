"""What the converters do with a GPU, as far as a PyTorch without one can tell."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult
from triton_converters.load import gpu, torch_framework

pytestmark = pytest.mark.torch
Refer = Callable[..., ReferenceResult]
Convert = Callable[..., ConvertResult]
OLD = "The NVIDIA driver on your system is too old (found version 12020)."


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU has been noted in this process."""
    monkeypatch.setattr(gpu, "_used", [])


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a GPU, and a PyTorch with CUDA whose driver is too old."""

    def zeros(*shape: int, device: str) -> Any:
        raise RuntimeError(OLD)

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch_framework.torch, "zeros", zeros)


@pytest.mark.usefixtures("unseen")
def test_a_gpu_that_pytorch_does_not_see_ends_the_job_in_pytorch_s_words() -> None:
    with pytest.raises(StageError) as caught:
        torch_framework.exact_device()
    assert caught.value.reason is Reason.GPU_UNAVAILABLE
    assert OLD in caught.value.message
    assert torch.__version__ in caught.value.message


@pytest.mark.usefixtures("unseen")
def test_a_pytorch_without_cuda_computes_on_the_cpu_of_a_node_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The release's own image, which docs/gpu.md says computes there."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    assert torch_framework.exact_device().type == "cpu"
    assert gpu.device_name() == ""


def test_results_tell_of_no_gpu_where_there_is_none(convert: Convert) -> None:
    assert convert("Points", "onnx").gpu == ""


def test_results_name_the_gpu_that_the_framework_saw(refer: Refer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_framework.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch_framework.torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    # It is only said to be there: the model stays where it can compute.
    monkeypatch.setattr(torch_framework.torch, "device", lambda name: "cpu")
    assert refer("Points").gpu == "NVIDIA H200"
