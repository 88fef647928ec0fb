"""What runs before a server with steps: it empties where they may write, and becomes the server. It is run for real."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triton_operator.resources.fixed_paths import BEFORE

SHOW_IGNORED = ("sh", "-c", "grep SigIgn /proc/self/status")


def started(*paths: Path, command: tuple[str, ...] = ("echo", "the server")) -> subprocess.CompletedProcess[str]:
    """What a container prints whose server is the command, and whose steps may write to the paths."""
    program, *arguments = BEFORE
    assert program == "python3"
    argv = [sys.executable, *arguments, *map(str, paths), "--", *command]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, cwd="/")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    made = tmp_path / "cache"
    made.mkdir()
    return made


def test_all_that_an_earlier_container_left_is_gone(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/half").touch()
    (cache / "work/deep/er").mkdir(parents=True)
    (cache / "work/deep/half.npz").write_bytes(b"half")
    (cache / ".hidden").touch()
    os.mkfifo(cache / "pipe")
    Path(os.fsdecode(os.fsencode(cache) + b"/\xff")).touch()
    answer = started(cache, tmp_path / "other")
    assert (answer.stdout, answer.stderr) == ("the server\n", "")
    assert list(cache.iterdir()) == list((tmp_path / "other").iterdir()) == []


def test_no_link_is_followed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").write_text("kept", encoding="utf-8")
    (outside / "kept").chmod(0o444)
    (cache / "work").mkdir()
    for place in (cache, cache / "work"):
        (place / "folder").symlink_to(outside)
        (place / "file").symlink_to(outside / "kept")
        (place / "up").symlink_to("..")
        (place / "loop").symlink_to("loop")
        (place / "nothing").symlink_to("/nonexistent")
        os.link(outside / "kept", place / "hard")
    started(cache)
    assert list(cache.iterdir()) == []
    assert (outside / "kept").read_text(encoding="utf-8") == "kept"
    assert [each.stat().st_mode & 0o777 for each in (outside, outside / "kept")] == [0o755, 0o444]


def test_folders_that_their_step_closed_are_opened(cache: Path) -> None:
    (cache / "work/inner").mkdir(parents=True)
    (cache / "work/inner/half").touch()
    (cache / "work/inner").chmod(0)
    (cache / "work").chmod(0o500)
    started(cache)
    assert list(cache.iterdir()) == []


def test_whatever_cannot_be_emptied_the_server_starts(cache: Path, tmp_path: Path) -> None:
    here = os.open(cache, os.O_RDONLY)
    # Longer than a path may be, and not so deep that pytest cannot remove it.
    for _ in range(60):
        os.mkdir("d" * 100, dir_fd=here)
        here, above = os.open("d" * 100, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    (cache / "half").touch()
    (tmp_path / "file").touch()
    assert started(tmp_path / "none", tmp_path / "file", cache).stdout == "the server\n"
    assert (tmp_path / "file").exists()
    assert not (cache / "half").exists()


def test_the_server_starts_as_it_would_alone(cache: Path) -> None:
    """Python ignores two signals, and what it becomes would ignore them too."""
    alone = subprocess.run(SHOW_IGNORED, check=True, capture_output=True, text=True, timeout=60)
    assert started(cache, command=SHOW_IGNORED).stdout == alone.stdout
    given = ("--model-repository=/x", "--", "", "a b", "$HOME")
    shown = started(cache, command=("printf", "%s|", *given)).stdout
    assert shown == "".join(f"{each}|" for each in given)


def test_no_code_that_a_step_left_runs(cache: Path) -> None:
    for name in ("os.py", "signal.py", "sitecustomize.py", "usercustomize.py", "contextlib.py"):
        (cache / name).write_text("raise SystemExit('the code of the step')", encoding="utf-8")
    argv = [sys.executable, *BEFORE[1:], "--", "echo", "the server"]
    environment = os.environ | {"PYTHONPATH": str(cache), "HOME": str(cache), "PYTHONSTARTUP": str(cache / "os.py")}
    answer = subprocess.run(argv, cwd=cache, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (answer.stdout, answer.stderr, answer.returncode) == ("the server\n", "", 0)
