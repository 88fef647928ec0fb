"""A real tritonserver of the tritonserver-cpu image on the loopback interface."""

import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tritonclient.grpc as triton

ROOT = Path(__file__).resolve().parents[2]
COUNTED_SECONDS = 10.0
"""How long a busy machine may take to count a request after its answer."""
RUN = [sys.executable, "-m", "hack.imagebuild", "run"]


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

    def reaches(self, name: str, model: str, count: float) -> bool:
        """Whether the sum of a metric of a model becomes so much: the server counts after it has answered."""
        deadline = time.monotonic() + COUNTED_SECONDS
        while (found := sum(self.metric(name, model).values())) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return found == count

    def metric(self, name: str, model: str) -> dict[str, float]:
        """Read a metric of a model: sums by instance, or by "" where it has no such label."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        found: dict[str, float] = {}
        for line in lines:
            match = re.fullmatch(rf"{name}{{(.*)}} (\S+)", line)
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1])) if match else {}
            if match and labels["model"] == model:
                instance = labels.get("instance", "")
                found[instance] = found.get(instance, 0.0) + float(match[2])
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


def wait_ready(server: Server, patience: float = 300) -> Server:
    deadline = time.monotonic() + patience
    while not server.is_ready():
        assert server.process.poll() is None, server.log()
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.2)
    return server


def offspring(process: int) -> Iterator[int]:
    """The numbers of all processes below one. Some end while they are looked for."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for each in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (each / "children").read_text().split()):
                yield child
                yield from offspring(child)
