"""Folders are named from where the command was started; programs start elsewhere, and their paths are absolute."""

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest

from triton_local.session import SessionError
from triton_plugin.__main__ import main
from triton_plugin.commands import check
from triton_plugin.exits import Exit

ROOT = Path(__file__).parents[2]


def test_what_a_session_works_on_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def checked(folder: Path, *others: Any) -> Exit:
        options: argparse.Namespace = others[-2]
        seen.extend([folder, *(each for _, each in (*options.claim, *options.secret))])
        raise SessionError("it was seen")

    monkeypatch.setattr(check, "_checked", checked)
    monkeypatch.setattr(check, "interpreter", lambda _: None)
    monkeypatch.setattr(check, "runtime", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path)
    words = ("check", "digits.onnx", "--folder", "kept", "--claim", "models=models", "--secret", "bucket=keys")
    assert main(list(words)) == Exit.FAILED
    assert seen == [tmp_path / "kept", tmp_path / "models", tmp_path / "keys"]
