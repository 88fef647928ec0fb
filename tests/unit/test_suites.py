"""`make test` says what failed, whatever ended a suite; the suites here are made up, what runs them is real."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:hypothesispytest"
MAKEFILE = f"""
test-good: ; @{PYTEST} -p no:xdist good.py
test-both: ; @{PYTEST} -p no:xdist good.py
	@{PYTEST} -n 2 bad.py broken.py
test-crash: ; @{PYTEST} -p no:xdist crash.py
test-worker: ; @{PYTEST} -n 1 crash.py
test-kill: ; @{PYTEST} -p no:xdist kill.py
test-slow: ; @{PYTEST} -p no:xdist slow.py
test-stubborn: ; @{PYTEST} -p no:xdist stubborn.py
test-none: ; @echo nothing was built; exit 3
"""
FILES = {
    "good.py": "def test_good(): pass",
    "bad.py": """
import pytest
@pytest.fixture
def broken(): raise OSError
@pytest.fixture
def left():
    yield
    raise OSError
def test_bad(): assert False
def test_set_up(broken): pass
def test_teardown(left): pass
@pytest.mark.parametrize("word", ["of two"])
def test_words(word): assert not word
""",
    "broken.py": "import nothing_of_that_name",
    "crash.py": "import os\ndef test_good(): pass\ndef test_crash(): os._exit(0)\ndef test_after(): pass",
    "kill.py": "import os, signal\ndef test_killed(): os.kill(os.getpid(), signal.SIGTERM)",
    "slow.py": """
import pathlib, time, pytest
@pytest.fixture
def held():
    yield
    pathlib.Path("cleaned").touch()
def test_bad(): assert False
def test_slow(held):
    pathlib.Path("there").touch()
    time.sleep(60)
""",
    "stubborn.py": """
import pathlib, signal, time
def test_stubborn():
    signal.signal(signal.SIGINT, lambda *_: pathlib.Path("refused").touch())
    pathlib.Path("there").touch()
    time.sleep(60)
""",
}
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start what `make test` runs, with suites of the made-up Makefile."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def started(*suites: str) -> "subprocess.Popen[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST_"))}
        return subprocess.Popen(
            [sys.executable, "-m", "hack.suites", *suites],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return started


def ended(running: "subprocess.Popen[str]", suites: int = 2) -> tuple[int, list[str]]:
    """Exit status, and the lines of the table and the verdict."""
    printed, _ = running.communicate(timeout=120)
    return running.returncode, printed.splitlines()[-suites - 2 :]


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} did not come"
        time.sleep(0.05)


def test_all_passed(start: Start) -> None:
    status, lines = ended(start("good", "good"))
    assert status == 0
    assert lines[-1] == "PASSED: good, good"
    assert all(re.fullmatch(r"good +0 min \d\d s  passed", line) for line in lines[:2])
    assert re.fullmatch(r"total +0 min \d\d s", lines[2])


def test_failures_errors_and_files_that_cannot_be_read_are_named(start: Start) -> None:
    """Of a suite's second run of pytest, in workers; what comes after it is not run."""
    status, lines = ended(start("good", "both", "slow", "none"), suites=4)
    assert status == 1
    assert [line.split()[0] for line in lines[:-1]] == ["good", "both", "slow", "none", "total"]
    assert [line.split()[-1] for line in lines[:-2]] == ["passed", "failed", "run", "run"]
    said, left = lines[-1].removeprefix("FAILED: both: ").split("; ")
    assert left == "not run: slow, none"
    assert set(said.split(", ")) == {
        "bad.py::test_bad",
        "bad.py::test_set_up",
        "bad.py::test_teardown",
        "bad.py::test_words[of two]",
        "broken.py",
    }


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("crash", "crash.py::test_crash (had not ended)"),
        ("worker", "crash.py::test_crash"),
        ("kill", "kill.py::test_killed (had not ended)"),
        ("none", "make test-none ended with 2, no test of it failed"),
    ],
)
def test_a_suite_that_died_is_named(start: Start, suite: str, said: str) -> None:
    status, lines = ended(start(suite, "good"))
    assert status == 1
    assert lines[-1] == f"FAILED: {suite}: {said}; not run: good"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_suite_cleans_up_and_is_named(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    running = start("good", "slow", "none")
    wait_for(tmp_path / "there")
    running.send_signal(number)
    status, lines = ended(running, suites=3)
    assert status == 128 + number
    tests = "slow.py::test_bad, slow.py::test_slow (had not ended)"
    assert lines[-1] == f"FAILED: slow (interrupted by {number.name}): {tests}; not run: none"
    assert [line.split()[-1] for line in lines[:3]] == ["passed", "failed", "run"]
    assert (tmp_path / "cleaned").exists()


def test_a_second_signal_ends_a_suite_that_refuses(start: Start, tmp_path: Path) -> None:
    running = start("stubborn", "good")
    wait_for(tmp_path / "there")
    running.send_signal(signal.SIGTERM)
    wait_for(tmp_path / "refused")
    running.send_signal(signal.SIGTERM)
    status, lines = ended(running)
    assert status == 128 + signal.SIGTERM
    assert lines[-1].startswith("FAILED: stubborn (interrupted by SIGTERM): stubborn.py::test_stubborn")
