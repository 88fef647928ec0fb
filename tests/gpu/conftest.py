"""TensorRT and a GPU, or a clear failure: this suite is run on purpose, on a machine that has both."""

import importlib
from typing import Any

import pytest

from triton_converters.contract.failure import StageError
from triton_converters.convert import tensorrt_library
from triton_converters.convert.tensorrt_library import Library


@pytest.fixture(scope="session")
def cudart() -> Any:
    """NVIDIA's Python binding of the CUDA runtime, with a device."""
    try:
        runtime = importlib.import_module("cuda.bindings.runtime")
    except ImportError as error:
        pytest.fail(f"the GPU suite needs the package cuda-python: {error}; run make test-gpu", pytrace=False)
    status, count = runtime.cudaGetDeviceCount()
    if int(status) != 0 or count < 1:
        pytest.fail(f"the GPU suite needs a GPU; the CUDA runtime says {status!s} and counts {count}", pytrace=False)
    return runtime


@pytest.fixture(scope="session")
def library(cudart: Any) -> Library:
    """TensorRT proper, as the convert Job finds it."""
    try:
        return tensorrt_library.load()
    except StageError as error:
        pytest.fail(f"the GPU suite needs the package tensorrt: {error.message}", pytrace=False)


@pytest.fixture(scope="session")
def gpu(cudart: Any) -> str:
    """The device's name."""
    status, properties = cudart.cudaGetDeviceProperties(0)
    assert int(status) == 0, status
    return str(properties.name.decode().strip("\0"))
