"""A TensorRT that builds without a GPU: TensorRT-RTX, which has the same classes and no backend in Triton."""

import pytest
import tensorrt_rtx_bindings

from triton_converters.convert import tensorrt_library
from triton_converters.convert.tensorrt_library import Library


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """What ``tensorrt_library.load`` finds."""
    found = Library(tensorrt_rtx_bindings, "SM89")
    monkeypatch.setattr(tensorrt_library, "load", lambda: found)
    return found
