"""A real tritonserver of the tritonserver-cpu image, and stages run in the converter image beside it."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import served_claim

from triton_converters import claim
from triton_converters.document import Document
from triton_converters.result import Outcome

ROOT = Path(__file__).resolve().parents[2]
IN_IMAGE = [sys.executable, "-m", "images", "run"]


@dataclass(frozen=True)
class Pod:
    """A claim, a server that serves its revision, and a /dev/shm that both containers see."""

    root: Path
    shared_memory: Path
    ports: tuple[int, int, int]
    """HTTP, gRPC, metrics."""
    server: "subprocess.Popen[str]"
    log: Path

    def start_stage(self, stage: str, request: Document, environment: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        """Start a stage in the converter image; its termination message goes to its standard output too."""
        argv = [
            *IN_IMAGE, "converter",
            "--mount", f"{self.root}:{claim.MOUNT}", "--mount", f"{self.shared_memory}:/dev/shm",
            *(word for pair in ("TERMINATION_LOG=/tmp/message", *environment) for word in ("--env", pair)),
            "--", "python3", "-m", "triton_converters", stage, request.to_json(),
        ]  # fmt: skip
        return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_stage(self, stage: str, request: Document, environment: tuple[str, ...] = ()) -> tuple[int, Outcome, str]:
        """Run a stage to its end: exit code, what it answers, and all it printed."""
        process = self.start_stage(stage, request, environment)
        output = process.communicate(timeout=300)[0]
        return process.returncode, outcome_in(output), output

    def measurement(self, key: str) -> Path:
        return claim.measurement_directory(key, self.root)


def outcome_in(output: str) -> Outcome:
    messages = [line for line in output.splitlines() if line.startswith('{"key"')]
    assert messages, output
    return Outcome.from_json(messages[-1])


def free_ports() -> tuple[int, int, int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        http, grpc, metrics = (each.getsockname()[1] for each in sockets)
    return http, grpc, metrics


@contextmanager
def serving(root: Path) -> Iterator[Pod]:
    """A server on the claim's revision, gone at the end."""
    shared_memory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    ports, log = free_ports(), root / "tritonserver.log"
    argv = [
        *IN_IMAGE, "tritonserver-cpu",
        "--mount", f"{root}:{claim.MOUNT}:ro", "--mount", f"{shared_memory}:/dev/shm", "--",
        "tritonserver", f"--model-repository={claim.model_repository(served_claim.REVISION)}",
        "--model-control-mode=none", "--exit-on-error=true",
        "--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2]),
    ]  # fmt: skip
    with log.open("w") as file:
        server = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file, text=True)
    try:
        deadline = time.monotonic() + 300
        while "Started Metrics Service" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield Pod(root, shared_memory, ports, server, log)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(60)
        shutil.rmtree(shared_memory, ignore_errors=True)


@pytest.fixture(scope="session")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    """One server for all tests that leave it as it is."""
    with serving(served_claim.build(tmp_path_factory.mktemp("claim"))) as served:
        yield served


@pytest.fixture
def start_pod(tmp_path: Path) -> Iterator[Callable[[], Pod]]:
    """A server of a test's own."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(serving(served_claim.build(tmp_path)))
