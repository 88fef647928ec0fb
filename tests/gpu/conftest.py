"""TensorRT and PyTorch with a GPU, or a clear failure: this suite runs on purpose, in the converter image for GPUs."""

import importlib
from typing import Any

import pytest

from triton_converters.contract.failure import StageError
from triton_converters.convert import tensorrt_library
from triton_converters.convert.tensorrt_library import Library


@pytest.fixture(scope="session")
def torch() -> Any:
    """The image's PyTorch, with a GPU."""
    try:
        found = importlib.import_module("torch")
    except ImportError as error:
        pytest.fail(f"the GPU suite needs PyTorch: {error}; run make test-gpu", pytrace=False)
    if not found.cuda.is_available():
        pytest.fail("the GPU suite needs a GPU, and PyTorch sees none; run make test-gpu", pytrace=False)
    return found


@pytest.fixture(scope="session")
def library(torch: Any) -> Library:
    """TensorRT proper, as the convert Job finds it."""
    try:
        return tensorrt_library.load()
    except StageError as error:
        pytest.fail(f"the GPU suite needs the package tensorrt: {error.message}", pytrace=False)


@pytest.fixture(scope="session")
def gpu(torch: Any) -> str:
    """The device's name."""
    return str(torch.cuda.get_device_name())
