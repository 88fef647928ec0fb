"""Real servers of the tritonserver-cpu image, on models that the converter image makes."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import tritonclient.grpc as triton

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "images", "run"]
sys.path.insert(0, str(ROOT / "images" / "tritonserver-cpu" / "runtimes"))


@dataclass
class Server:
    """A tritonserver on the loopback interface."""

    process: subprocess.Popen[str]
    ports: tuple[int, int, int]
    log_file: Path

    def client(self) -> triton.InferenceServerClient:
        return triton.InferenceServerClient(f"127.0.0.1:{self.ports[1]}")

    def log(self) -> str:
        return self.log_file.read_text()

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/v2/health/ready", timeout=5):
                return True
        except OSError:
            return False

    def metric(self, name: str, model: str) -> dict[str, float]:
        """Read a metric of a model: values by instance, or by "" where it has no such label."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        found = {}
        for line in lines:
            match = re.fullmatch(rf"{name}{{(.*)}} (\S+)", line)
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1])) if match else {}
            if match and labels["model"] == model:
                found[labels.get("instance", "")] = float(match[2])
        return found

    def runtime_calls(self, model: str) -> dict[str, float]:
        """Read the runtime's own calls by instance, when the count has come to rest (it is sent once a second)."""
        before: dict[str, float] = {}
        while (now := self.metric("triton_cpu_runtime_calls", model)) != before or not now:
            before = now
            time.sleep(1.2)
        return now

    def stop(self, patience: float = 20) -> int:
        self.process.terminate()
        return self.process.wait(patience)


def free_ports() -> tuple[int, int, int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        one, two, three = (item.getsockname()[1] for item in sockets)
    return one, two, three


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `good`, `bad` and `corrupt`: model repositories made in the converter image."""
    folder = tmp_path_factory.mktemp("models")
    mounts = ["--mount", f"{Path(__file__).parent}:/tests:ro", "--mount", f"{folder}:/models"]
    argv = [*RUN, "converter", *mounts, "--", "python3", "/tests/make_models.py", "/models"]
    subprocess.run(argv, check=True, cwd=ROOT)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """A function that starts a server on a repository as user 1000, and does not wait for it."""
    servers: list[Server] = []

    def start_server(repository: Path, *flags: str) -> Server:
        ports = free_ports()
        log = tmp_path_factory.mktemp("server") / "log"
        argv = [
            *RUN, "tritonserver-cpu", "--user", "1000:1000", "--mount", f"{repository}:/models:ro", "--",
            "tritonserver", "--model-repository=/models", "--http-port", str(ports[0]),
            "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2]), *flags,
        ]  # fmt: skip
        with log.open("w") as file:
            process = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file, text=True)
        servers.append(Server(process, ports, log))
        return servers[-1]

    yield start_server
    for server in servers:
        if server.process.poll() is None:
            server.stop()


def wait_ready(server: Server, patience: float = 90) -> Server:
    deadline = time.monotonic() + patience
    while not server.is_ready():
        assert server.process.poll() is None, server.log()
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.2)
    return server


@pytest.fixture(scope="session")
def good(repositories: Path, start: Callable[..., Server]) -> Server:
    """A server on all good models, as it runs in a pod."""
    return wait_ready(start(repositories / "good", "--model-control-mode=none"))


@pytest.fixture(scope="session")
def explicit(repositories: Path, start: Callable[..., Server]) -> Server:
    """A server that loads bad models only when it is asked to."""
    return wait_ready(start(repositories / "bad", "--model-control-mode=explicit"))


@pytest.fixture(scope="session")
def built() -> dict[str, dict[str, str]]:
    """All images, built if they are not yet, by name."""
    argv = [sys.executable, "-m", "images", "build", "--json"]
    output = subprocess.run(argv, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    return {image["name"]: image for image in json.loads(output)}
