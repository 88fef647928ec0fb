"""The startup probe's program beside the real server: it ends one that hangs as it loads, and no slow one."""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hack.imagebuild.pod import free_ports
from tests.images.python_models import readable, tensors, write_model
from tests.images.server import ROOT, RUN, offspring
from triton_operator.resources.server import COMPLETE, FIXED_MODELS
from triton_operator.resources.start_probe import WAIT

pytestmark = pytest.mark.images

IN_A_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c")
NUMBERED = 'echo $0 >/proc/sys/kernel/ns_last_pid; "$@"; exit $?'
"""Gives what the image is run with this test's own number: it names its container by that."""
PATIENCE_SECONDS = 10
START_SECONDS = 60
STUB = "triton_python_b"
MODEL = """
import os, threading, time
HERE = os.path.dirname(__file__)
def goes_on():
    return not os.path.exists(HERE + "/go")
def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
def compute():
    while goes_on():
        for _ in range(100000):
            pass
def read():
    with open(HERE + "/large", "rb", buffering=0) as file:
        while goes_on():
            time.sleep(0.1)
            if not file.read(2**17):
                file.seek(0)
class TritonPythonModel:
    def initialize(self, args):
        {how}()
    def execute(self, requests):
        return []
"""


class Loading:
    """A server whose model loads, and the program beside it."""

    def __init__(self, version: Path, server: int, port: int) -> None:
        self.server, self._version = server, version
        beside = ["nsenter", f"--target={server}", "--pid", "--mount", "--root", "--setuid=1000", "--setgid=1000"]
        argv = [*beside, *WAIT, "/v2/models/slow/ready", str(port), str(PATIENCE_SECONDS)]
        self.probe = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def let_go(self) -> None:
        (self._version / "go").touch()


@contextmanager
def loading(folder: Path, how: str) -> Iterator[Loading]:
    """A server whose model loads so, in a process namespace of its own, as in a container."""
    sides = (*tensors("input", ("x", "FP32", "2")), *tensors("output", ("y", "FP32", "2")))
    version = write_model(folder / "models" / "slow", *sides)
    (version / "model.py").write_text(MODEL.format(how=how))
    (version / "large").write_bytes(bytes(2**22))
    folder.chmod(0o755)
    ports = free_ports()
    argv = [
        *IN_A_NAMESPACE, NUMBERED, str(os.getpid() - 1),
        *RUN, "tritonserver-cpu", "--user", "1000:1000", "--mount", f"{readable(folder / 'models')}:/models:ro", "--",
        "tritonserver", "--model-repository=/models", f"--http-port={ports[0]}", f"--grpc-port={ports[1]}",
        f"--metrics-port={ports[2]}", FIXED_MODELS, COMPLETE,
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield Loading(version, _loading_server(process.pid, folder / "log"), ports[0])
    finally:
        for each in filter(_is_of_server, [*offspring(process.pid)]):
            os.kill(each, signal.SIGKILL)
        process.wait(60)


def _is_of_server(process: int) -> bool:
    return Path(f"/proc/{process}/comm").read_text().startswith("triton")


def _loading_server(process: int, log: Path) -> int:
    """The number of the server once the process that has the model in it runs."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for each in offspring(process):
            with suppress(OSError):
                if Path(f"/proc/{each}/comm").read_text().strip() == STUB:
                    return int(Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[1])
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.mark.parametrize(("how", "expected"), [("deadlock", "S (sleeping) futex"), ("stopped", "T (stopped)")])
def test_a_server_that_hangs_as_it_loads_is_ended_by_name(tmp_path: Path, how: str, expected: str) -> None:
    with loading(tmp_path, "compute" if how == "stopped" else how) as server:
        if how == "stopped":
            for each in (server.server, *offspring(server.server)):
                os.kill(each, signal.SIGSTOP)
        _, words = server.probe.communicate(timeout=START_SECONDS)
    assert server.probe.returncode == 1
    assert f"the server hung: for {PATIENCE_SECONDS} s nothing in its container computed or read" in words
    assert re.search(rf"{STUB} \d+ {re.escape(expected)}", words)


@pytest.mark.parametrize("how", ["read", "compute"])
def test_a_slow_server_is_waited_for(tmp_path: Path, how: str) -> None:
    """One reads a large file at 1 MB/s; the other computes with a tenth of a core."""
    with loading(tmp_path, how) as server:
        done = threading.Event()
        starving = threading.Thread(target=_starve, args=([*offspring(server.server)], done))
        if how == "compute":
            starving.start()
        with pytest.raises(subprocess.TimeoutExpired):
            server.probe.wait(2 * PATIENCE_SECONDS)
        server.let_go()
        assert server.probe.wait(START_SECONDS) == 0
        done.set()


def _starve(processes: list[int], done: threading.Event) -> None:
    """Let processes run for a tenth of the time, as a limit of a tenth of a core does."""
    while not done.is_set():
        for number, seconds in ((signal.SIGSTOP, 0.09), (signal.SIGCONT, 0.01)):
            for each in processes:
                with suppress(ProcessLookupError):
                    os.kill(each, number)
            time.sleep(seconds)
