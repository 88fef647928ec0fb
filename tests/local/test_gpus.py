"""GPUs of this machine are those of nvidia-smi. Here a program of that name says what one said of an H200."""

import sys
from pathlib import Path

import pytest
import yaml

from triton_local.gpus import Gpu, gpus
from triton_local.install import Installation
from triton_local.interpreter import Python
from triton_operator.names import API_VERSION, KIND
from triton_plugin.__main__ import main
from triton_plugin.commands import check
from triton_plugin.exits import Exit


def an_nvidia_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_a_gpu_has_the_name_that_nodes_are_labelled_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_nvidia_smi(tmp_path, "echo 'NVIDIA H200, 580.159.03'; echo 'NVIDIA A100-SXM4-40GB, 580.159.03'", monkeypatch)
    first, second = gpus()
    assert first == Gpu("NVIDIA-H200", "580.159.03")
    assert second.product == "NVIDIA-A100-SXM4-40GB"
    assert first.labels["nvidia.com/gpu.product"] == "NVIDIA-H200"


@pytest.mark.parametrize("script", ["echo No devices were found; exit 6", "kill -9 $$"])
def test_a_driver_that_shows_none_has_none(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_nvidia_smi(tmp_path, script, monkeypatch)
    assert gpus() == ()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert gpus() == ()


@pytest.mark.parametrize("unboxed", [True, False])
def test_an_object_for_a_gpu_is_refused_before_anything_is_installed(
    unboxed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Installation, "image", lambda *_: pytest.fail("it installs"))
    monkeypatch.setattr(check, "runtime", lambda *_: None)
    own = Path(sys.executable)
    interpreter = Python(own, own.parent, own.parent, (), (3, 12, 3), own, ())
    monkeypatch.setattr(check, "interpreter", lambda _: interpreter)
    monkeypatch.setattr(Installation, "name", lambda _, name: f"{name}@sha256:{'0' * 64}")
    monkeypatch.setattr(check, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = {"source": {"uri": "pvc://models"}, "models": [{"name": "net", "path": "net.onnx"}], "gpu": {}}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "net"}, "spec": spec}
    (tmp_path / "net.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    words = [
        "check",
        str(tmp_path / "net.yaml"),
        "--claim",
        f"models={tmp_path}",
        "--folder",
        str(tmp_path.with_suffix(".check")),
    ]
    assert main([*words, "--unboxed"] if unboxed else words) == Exit.FAILED
    assert "spec.gpu: nvidia-smi shows no GPU of this machine" in capsys.readouterr().err
