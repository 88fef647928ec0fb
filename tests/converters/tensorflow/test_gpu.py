"""What the converters do with a GPU, as far as a TensorFlow without one can tell."""

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import gpu
from triton_converters.load.tf_framework import TensorFlowFramework

pytestmark = pytest.mark.tensorflow


def framework() -> TensorFlowFramework:
    def answer(x: Any) -> Any:
        return x

    return TensorFlowFramework(answer, list, ("x",), ("y",), Path("/source"), "model.py")


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a GPU, in whose process no GPU has been noted."""
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setattr(gpu, "_used", [])


def test_a_gpu_that_tensorflow_does_not_see_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    with pytest.raises(StageError) as caught:
        framework()
    assert caught.value.reason is Reason.GPU_UNAVAILABLE
    assert tf.__version__ in caught.value.message


def test_a_tensorflow_without_cuda_computes_on_the_cpu_of_a_node_with_a_gpu() -> None:
    assert framework().inputs == ("x",)
    assert gpu.used() == ""


def test_the_gpu_that_it_sees_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["/physical_device:GPU:0"])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: {"device_name": "NVIDIA H200"})
    framework()
    assert gpu.used() == "NVIDIA H200"
