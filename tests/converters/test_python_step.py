"""The files of a Python step in a revision."""

import ast
import json
import os
from pathlib import Path

import pytest

from triton_converters import tensorrt_check
from triton_converters.claim_store import python_step
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.python_backend import user_step


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source with a step in a folder, and other things."""
    root = tmp_path / "source"
    for name in ("steps/decode.py", "steps/data/words.txt", "steps/__pycache__/decode.pyc", "other.py", "weights.pt"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def test_a_step_has_our_program_and_the_folder_of_its_file(source: Path, tmp_path: Path) -> None:
    version = tmp_path / "1"
    version.mkdir()
    found = python_step.write(source, "steps/decode.py", version)
    python_step.write_settings(version, "steps/decode.py", 2)
    assert found == (
        "model.py",
        "guard.py",
        "_triton_step.py",
        "source/steps/data/words.txt",
        "source/steps/decode.py",
    )
    written = [path.relative_to(version).as_posix() for path in version.rglob("*") if path.is_file()]
    assert sorted(written) == sorted([*found, "step.json"])
    assert (version / "_triton_step.py").read_bytes() == Path(user_step.__file__).read_bytes()
    assert (version / "source/steps/decode.py").samefile(source / "steps/decode.py")
    assert json.loads((version / "step.json").read_text()) == {"file": "steps/decode.py", "threads": 2}


def test_a_file_at_the_root_takes_the_whole_source(source: Path, tmp_path: Path) -> None:
    version = tmp_path / "1"
    version.mkdir()
    assert "source/weights.pt" in python_step.write(source, "other.py", version)


def test_a_link_in_the_folder_is_left_out(source: Path, tmp_path: Path) -> None:
    os.symlink("/etc/passwd", source / "steps/passwd")
    version = tmp_path / "1"
    version.mkdir()
    assert "source/steps/passwd" not in python_step.write(source, "steps/decode.py", version)


def test_what_is_missing_and_what_is_too_much(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StageError) as error:
        python_step.write(source, "steps/none.py", tmp_path)
    assert error.value.reason is Reason.ENTRYPOINT_INVALID
    monkeypatch.setattr(python_step, "MOST_FILES", 1)
    with pytest.raises(StageError, match="has 2 files, but a Python step at most 1: move the file") as error:
        python_step.write(source, "steps/decode.py", tmp_path)
    assert error.value.reason is Reason.SOURCE_INVALID


@pytest.mark.parametrize("file", ["steps/__pycache__/label.py", "steps/link.py"])
def test_a_file_that_no_server_would_get_is_refused(tmp_path: Path, file: str) -> None:
    root = tmp_path / "__pycache__" / "root"
    (root / "steps" / "__pycache__").mkdir(parents=True)
    (root / "steps" / "__pycache__" / "label.py").write_text("")
    (root / "steps" / "real.py").write_text("")
    (root / "steps" / "link.py").symlink_to("real.py")
    (tmp_path / "out").mkdir()
    with pytest.raises(StageError, match="not published: move the file") as error:
        python_step.write(root, file, tmp_path / "out")
    assert error.value.reason is Reason.ENTRYPOINT_INVALID
    assert python_step.write(root, "steps/real.py", tmp_path / "out")[-1] == "source/steps/real.py"


def test_the_folder_of_a_version_comes_with_the_files_next_to_it(tmp_path: Path) -> None:
    source, version = tmp_path / "source", tmp_path / "out"
    for name in ("label/1/model.py", "label/1/deep/a.txt", "label/labels.txt", "label/2/model.py", "other.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    version.mkdir()
    found = python_step.write(source, "label/1/model.py", version)
    assert found[len(python_step.PROGRAMS) :] == (
        "source/label/1/deep/a.txt",
        "source/label/1/model.py",
        "source/label/labels.txt",
    )
    given = user_step.StepFiles(version / "source", "label/1/model.py", version).arguments({"model_version": "1"})
    assert (Path(given["model_repository"]) / "labels.txt").read_text() == "label/labels.txt"


@pytest.mark.parametrize(
    "program", [*python_step.PROGRAMS.values(), Path(tensorrt_check.__file__)], ids=lambda path: path.name
)
def test_what_runs_in_a_server_is_written_for_the_oldest_python_that_the_docs_name(program: Path) -> None:
    ast.parse(program.read_text(), feature_version=python_step.SERVER_PYTHON)
    docs = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    assert f"Python {'.'.join(map(str, python_step.SERVER_PYTHON))} or later" in docs
