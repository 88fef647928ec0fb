"""What the converters do with a GPU, as far as a TensorFlow without one can tell."""

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert import tf_trt
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
    assert gpu.device_name() == ""


def test_the_gpu_that_it_sees_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["/physical_device:GPU:0"])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: {"device_name": "NVIDIA H200"})
    framework()
    assert gpu.device_name() == "NVIDIA H200"


def test_engines_of_tf_trt_take_the_batches_between_one_sample_and_the_largest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No TensorFlow of ours has TensorRT, but all know the words."""
    given: dict[str, Any] = {}

    def converter(**settings: Any) -> Any:
        given.update(settings)
        raise RuntimeError("no TensorRT")

    monkeypatch.setattr(tf_trt, "tensorrt_version", lambda: "10.8.0.43")
    monkeypatch.setattr(tf_trt.tf_savedmodel, "write", lambda task, path, half: None)
    monkeypatch.setattr(tf.experimental.tensorrt, "Converter", converter)
    task: Any = SimpleNamespace(
        request=SimpleNamespace(precision="fp16", tensorrt=SimpleNamespace(workspace_bytes=2**30))
    )
    with pytest.raises(RuntimeError, match="no TensorRT"):
        tf_trt.convert(task, tmp_path)
    known = importlib.import_module("tensorflow.python.compiler.tensorrt.trt_convert").supported_profile_strategies()
    assert given["dynamic_shape_profile_strategy"] in known
    assert "Range" in given["dynamic_shape_profile_strategy"]
