"""A machine that refuses what containers need: the command says so, names the way out, and has run nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.local import refusing
from triton_local.boxed import Box
from triton_plugin.exits import Exit

ROOT = Path(__file__).parents[2]


def test_this_machine_refuses_nothing() -> None:
    assert Box().refusal() == ""


@pytest.mark.parametrize("machine", refusing.MACHINES)
def test_a_machine_that_refuses_is_told_before_anything_is_installed_or_run(machine: str, tmp_path: Path) -> None:
    model = tmp_path / "digits.onnx"
    model.write_bytes((ROOT / "manifests/samples/digits/digits.onnx").read_bytes())
    argv = [sys.executable, refusing.__file__, machine, sys.executable, "-m", "triton_plugin", "check", str(model)]
    # A file, so that nothing can be installed there.
    environment = os.environ | {"XDG_CACHE_HOME": str(model)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.FAILED, done.stderr
    assert "this machine refuses namespaces to its users (" in done.stderr
    assert "so nothing was run" in done.stderr
    assert "pass --unboxed" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == [model.name]
