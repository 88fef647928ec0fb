"""What a profile pod is, on this machine: a claim, a tritonserver and stages beside it, each in its image."""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from triton_converters.claim_store.root import mark
from triton_converters.contract import layout
from triton_converters.contract.document import Document
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.measurement_requests import Load, Measurement
from triton_converters.contract.stages import STAGES

ROOT = Path(__file__).resolve().parents[2]
IN_IMAGE = [sys.executable, "-m", "hack.imagebuild", "run"]
START_SECONDS = 300
"""How long the server in an image may take to load its models on a busy machine."""
PROGRAM = "python3 -m triton_converters"
THREE_CONTAINERS = f'{PROGRAM} prepare "$@"; {PROGRAM} run "$1"; {PROGRAM} publish "$@"'


@dataclass(frozen=True)
class Pod:
    """A claim, a server that serves one revision, and a /dev/shm that both containers see."""

    root: Path
    shared_memory: Path
    ports: tuple[int, int, int]
    """HTTP, gRPC, metrics."""
    server: "subprocess.Popen[str]"
    log: Path

    def load(self, measurement: Measurement) -> Load:
        """What is common to all points measured against this server."""
        http, grpc, metrics = self.ports
        return Load(f"localhost:{grpc}", "grpc", f"localhost:{http}", (), measurement, f"localhost:{metrics}")

    def start_stage(self, stage: str, request: Document, environment: Sequence[str] = ()) -> "subprocess.Popen[str]":
        """Start a stage in the converter image; its termination message goes to its standard output too."""
        mounts = (f"{self.shared_memory}:/dev/shm",)
        return start_stage(self.root, stage, request, mounts, environment)

    def run_stage(
        self, stage: str, request: Document, environment: Sequence[str] = (), seconds: float = 300
    ) -> tuple[int, Outcome, str]:
        """Run a stage to its end: exit code, what it answers, and all it printed."""
        process = self.start_stage(stage, request, environment)
        output = process.communicate(timeout=seconds)[0]
        return process.returncode, outcome_in(output), output

    def measurement(self, key: str) -> Path:
        """Directory of a profile's, a search's or a measurement's result."""
        return layout.measurement_directory(key, self.root)


def start_stage(
    root: Path, stage: str, request: Document, mounts: Sequence[str] = (), environment: Sequence[str] = ()
) -> "subprocess.Popen[str]":
    """Start a stage in the converter image, with ``root`` as the operator's directory of a claim.

    Of a stage of three containers, all three are one here, which has the whole claim.
    """
    mark(root)
    command = ["python3", "-m", "triton_converters", stage, request.to_json()]
    if STAGES[stage].boxed:
        incoming = root / "incoming"
        incoming.mkdir(exist_ok=True)
        mounts = [*mounts, f"{tempfile.mkdtemp(dir=incoming)}:{layout.INCOMING_MOUNT}"]
        command = ["sh", "-ec", THREE_CONTAINERS, "sh", stage, request.to_json()]
    argv = [
        *IN_IMAGE, "converter", "--mount", f"{root}:{layout.ROOT}",
        *(word for mount in mounts for word in ("--mount", mount)),
        *(word for pair in ("TERMINATION_LOG=/tmp/message", *environment) for word in ("--env", pair)),
        "--", *command,
    ]  # fmt: skip
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def outcome_in(output: str) -> Outcome:
    """What a stage answered, in what it printed.

    Its standard error is in the same pipe, and may have no end of line yet where the answer begins.
    """
    messages = re.findall(r'{"key".*}', output)
    assert messages, output
    return Outcome.from_json(messages[-1])


def free_ports() -> tuple[int, int, int]:
    """Three ports that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        http, grpc, metrics = (each.getsockname()[1] for each in sockets)
    return http, grpc, metrics


@contextmanager
def serving(root: Path, revision: str, control: Sequence[str] = ("--model-control-mode=none",)) -> Iterator[Pod]:
    """A server on a revision of the claim at ``root``, gone at the end."""
    shared_memory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    ports, log = free_ports(), root / f"tritonserver-{revision}.log"
    argv = [
        *IN_IMAGE, "tritonserver-cpu",
        "--mount", f"{root}:{layout.ROOT}:ro", "--mount", f"{shared_memory}:/dev/shm", "--",
        "tritonserver", f"--model-repository={layout.model_repository(revision)}", *control, "--exit-on-error=true",
        "--disable-auto-complete-config",
        "--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2]),
        # By default it waits 30 s for models that a search has replaced.
        "--exit-timeout-secs=3",
    ]  # fmt: skip
    with log.open("w") as file:
        server = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file, text=True)
    try:
        deadline = time.monotonic() + START_SECONDS
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


def explicit(model: str) -> tuple[str, ...]:
    """How a search's server is started: with one model, which may be loaded anew with another configuration."""
    return "--model-control-mode=explicit", f"--load-model={model}"
