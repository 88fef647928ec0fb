"""Commands side by side: none is left behind, whatever way it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hack.deploy.command import CommandError
from hack.deploy.together import together

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs for `python3 -m`; each `sleeper` writes its own and its child's process number.

    `meets FILE OTHER STATUS` writes a file, and ends with the status once the other's is there.
    """
    (tmp_path / "meets.py").write_text(
        "import pathlib, sys, time\n"
        "mine, other, status = sys.argv[1:]\n"
        "pathlib.Path(mine).touch()\n"
        "while not pathlib.Path(other).exists():\n"
        "    time.sleep(0.02)\n"
        "sys.exit(int(status))"
    )
    (tmp_path / "sleeper.py").write_text(
        "import os, pathlib, subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        "partial = pathlib.Path(sys.argv[1] + '.partial')\n"
        "partial.write_text(f'{os.getpid()} {child.pid}')\n"
        "partial.rename(sys.argv[1])\n"
        "child.wait()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def started(file: Path) -> list[int]:
    """The numbers that a sleeper wrote, once it has."""
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(word) for word in file.read_text().split()]


def test_they_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other, so that one after the other would never end."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    together(("meets", one, two, "0"), ("meets", two, one, "0"))


def test_the_first_failure_is_told_and_ends_the_others_with_their_children(tmp_path: Path) -> None:
    numbers = str(tmp_path / "numbers")
    with pytest.raises(CommandError, match=r"`python3 -m meets .* 3` failed with status 3: see above"):
        together(("sleeper", numbers), ("meets", str(tmp_path / "one"), numbers, "3"))
    assert not any(map(is_running, started(tmp_path / "numbers")))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_nothing_is_left_of_who_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys; from hack.deploy.together import together\n"
        # A shell starts what it puts into the background with SIGINT ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "together(('sleeper', sys.argv[1]))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "numbers")]
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(ROOT)])
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL) as caller:
        numbers = started(tmp_path / "numbers")
        caller.send_signal(number)
        assert caller.wait(20) != 0
    assert not any(map(is_running, numbers))


def test_signals_mean_afterwards_what_they_meant_before(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    together(("meets", str(tmp_path / "one"), str(tmp_path / "one"), "0"))
    assert signal.getsignal(signal.SIGTERM) is before
