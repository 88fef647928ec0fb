"""Real servers of the tritonserver-cpu image, on models that the converter image makes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hack.imagebuild.pod import free_ports
from tests.images.server import ROOT, RUN, Server, wait_ready
from triton_operator.resources.server import COMPLETE, RESTRICTIONS

IMAGE = ROOT / "images" / "tritonserver-cpu"
sys.path[:0] = [str(IMAGE / "runtimes"), str(IMAGE)]


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
    """A function that starts a server on a repository as user 1000, and does not wait for it.

    ``within``: a command that runs the command that follows it.
    """
    servers: list[Server] = []

    def start_server(repository: Path, *flags: str, within: Sequence[str] = ()) -> Server:
        ports = free_ports()
        log = tmp_path_factory.mktemp("server") / "log"
        argv = [
            *within, *RUN, "tritonserver-cpu", "--user", "1000:1000", "--mount", f"{repository}:/models:ro", "--",
            "tritonserver", "--model-repository=/models", "--http-port", str(ports[0]),
            "--grpc-port", str(ports[1]), "--metrics-port", str(ports[2]), *flags,
        ]  # fmt: skip
        with log.open("w") as file:
            process = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file, text=True)
        servers.append(Server(process, ports, log))
        return servers[-1]

    yield start_server
    for server in servers:
        server.process.terminate()
    for server in servers:
        server.process.wait(60)  # twice the time that tritonserver gives its models to end


@pytest.fixture(scope="session")
def good(repositories: Path, start: Callable[..., Server]) -> Server:
    """A server on all good models, as it runs in a pod."""
    restrictions = (flag.replace("$(POD_UID)", "a-pod") for flag in RESTRICTIONS)
    return wait_ready(start(repositories / "good", "--model-control-mode=none", COMPLETE, *restrictions))


@pytest.fixture(scope="session")
def explicit(repositories: Path, start: Callable[..., Server]) -> Server:
    """A server that loads bad models only when it is asked to."""
    return wait_ready(start(repositories / "bad", "--model-control-mode=explicit"))


@pytest.fixture(scope="session")
def built() -> dict[str, dict[str, str]]:
    """All images, built if they are not yet, by name."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json"]
    output = subprocess.run(argv, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    return {image["name"]: image for image in json.loads(output)}
