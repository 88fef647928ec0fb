"""Whether TensorRT inside ONNX Runtime built an engine, by the directory that config.pbtxt names."""

from pathlib import Path

import pytest

from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import engines
from triton_converters.model_config.model import Execution, render

SIGNATURE = Signature((Tensor("x", "FP32", (3,)),), (Tensor("y", "FP32", (2,)),), 8)
CONFIG = ModelConfig(1, "KIND_GPU", True, (), 0, False, True, {})
BUILT = "TensorrtExecutionProvider_TRTKernel_graph_main_graph_0_0_sm90.engine"


def repository(folder: Path, cache: str, accelerator: str = "trt") -> Path:
    """A repository with the model that a convert Job writes."""
    for name, each in {"digits": accelerator, "plain": "none"}.items():
        (folder / name).mkdir(parents=True)
        text = render(SIGNATURE, CONFIG, Execution("onnx", each, 2**30, cache), {})
        (folder / name / "config.pbtxt").write_text(text)
    return folder


def test_a_server_that_built_an_engine_passes(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / BUILT).touch()
    (tmp_path / "cache" / BUILT.replace(".engine", ".profile")).touch()
    caches = engines.directories(repository(tmp_path / "models", str(tmp_path / "cache")))
    assert caches == (tmp_path / "cache",)
    assert engines.count(caches) == 1
    engines.check_engines(caches)


def test_one_that_built_none_is_plain_onnx_runtime(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    caches = engines.directories(repository(tmp_path / "models", str(tmp_path / "cache")))
    with pytest.raises(StageError, match="built no engine") as caught:
        engines.check_engines(caches)
    assert caught.value.reason is Reason.GAINS_NOTHING


@pytest.mark.parametrize("accelerator", ["none", "cuda"])
def test_without_the_accelerator_nothing_is_looked_for(tmp_path: Path, accelerator: str) -> None:
    (tmp_path / "cache").mkdir()
    assert engines.directories(repository(tmp_path / "models", str(tmp_path / "cache"), accelerator)) == ()
