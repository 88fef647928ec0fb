"""The check runs as it does in the server's image: a process of its own, with the standard library alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triton_converters import tensorrt_check
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.reasons import Reason

CONVERTERS = Path(tensorrt_check.__file__).parents[1]
KEY = "0123456789abcdef"


def check(built: str, log: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-S", "-m", "triton_converters.tensorrt_check", "profile", KEY, built]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CONVERTERS), "TERMINATION_LOG": str(log)}
    return subprocess.run(argv, env=variables | environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("found", ["10.9.0.34", "10.9.0.34+cuda12.8", "10.9.0"])
def test_the_same_version_passes_without_a_word(tmp_path: Path, found: str) -> None:
    ended = check("10.9.0.34", tmp_path / "log", TRT_VERSION=found)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "log").exists()
    assert "built with TensorRT 10.9.0.34" in ended.stdout


@pytest.mark.parametrize("found", ["10.9.0.35", "10.8.0.43", "11.0.0.1", "10.9.1"])
def test_another_version_is_final_and_names_both_and_what_to_change(tmp_path: Path, found: str) -> None:
    ended = check("10.9.0.34", tmp_path / "log", TRT_VERSION=found)
    assert ended.returncode == EXIT_FINAL
    outcome = Outcome.from_json((tmp_path / "log").read_text())
    assert (outcome.stage, outcome.key, outcome.reason) == ("profile", KEY, Reason.FORMAT_NOT_SERVED)
    for words in ("10.9.0.34", found, "spec.conversion.image", "spec.serving.image"):
        assert words in outcome.message


def test_without_the_variable_the_library_tells(tmp_path: Path) -> None:
    library = tmp_path / "x86_64-linux-gnu" / "libnvinfer.so.10.8.0"
    library.parent.mkdir()
    library.touch()
    (library.parent / "libnvinfer.so.10").symlink_to(library.name)
    assert tensorrt_check.installed({}, [str(tmp_path)]) == "10.8.0"
    assert tensorrt_check.installed({"TRT_VERSION": "10.9.0.34"}, [str(tmp_path)]) == "10.9.0.34"


def test_an_image_that_does_not_tell_is_left_to_its_server(tmp_path: Path) -> None:
    assert tensorrt_check.installed({"TRT_VERSION": "none"}, [str(tmp_path)]) == ""
    assert check("10.9.0.34", tmp_path / "log").returncode == 0
