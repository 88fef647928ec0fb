"""The operator as a real process, with the rules of the chart's ServiceAccount and nothing more."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import yaml

from hack.devcluster.binaries import program
from tests.apiserver.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "triton-operator"
IMAGE_VALUES = ROOT / "hack" / "lint" / "images.yaml"
NAMESPACE = "triton-operator"
USER = f"system:serviceaccount:{NAMESPACE}:triton-operator"
Found = TypeVar("Found")


def eventually(look: Callable[[], Found], within: float = 60.0) -> Found:
    """What `look` finds once it is truthy; an AssertionError of its own is tried again until the time is over."""
    deadline = time.monotonic() + within
    while True:
        try:
            found = look()
            if found:
                return found
            problem: object = f"found {found!r}"
        except AssertionError as error:
            problem = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {problem}")
        time.sleep(0.05)


def rendered(*settings: str, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """The chart's objects."""
    argv = [str(program("helm")), "template", "triton-operator", str(CHART), f"--namespace={namespace}"]
    argv += ["--values", str(IMAGE_VALUES)]
    outcome = subprocess.run([*argv, *settings], capture_output=True, text=True, check=True)
    return [body for body in yaml.safe_load_all(outcome.stdout) if body]


def install_account(admin: Kubectl, folder: Path, *settings: str, namespace: str = NAMESPACE) -> Path:
    """Create the chart's ServiceAccount, its rules and its admission policy; a kubeconfig that acts as that account."""
    bodies = rendered(*settings, namespace=namespace)
    kinds = ("ServiceAccount", "Role", "ClusterRole", "ValidatingAdmissionPolicy")
    rules = [body for body in bodies if body["kind"].startswith(kinds)]
    admin("apply", "-f", "-", body=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, *rules])
    return account(admin, folder, namespace, "triton-operator")


def account(admin: Kubectl, folder: Path, namespace: str, name: str) -> Path:
    """A kubeconfig that acts as a ServiceAccount."""
    token = admin.within(namespace)("create", "token", name, "--duration=3h").strip()
    config = json.loads(admin("config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    kubeconfig = folder / f"{name}-kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return kubeconfig


class Operator:
    """`python -m triton_operator` between entry and exit of the block."""

    argv: tuple[str, ...] = (sys.executable, "-m", "triton_operator")

    def __init__(self, kubeconfig: Path, log: Path, **environment: str) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = int(listener.getsockname()[1])
        self.log = log
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT / 'converters'}:{ROOT}",
            "CONVERTER_IMAGE": "converter:test",
            "CONVERTER_TENSORFLOW_IMAGE": "converter-tensorflow:test",
            "SERVER_IMAGE": "server:test",
            "INSTANCE_GROUP_KIND": "Auto",
            "WATCH_NAMESPACES": "",
            "LOG_FORMAT": "text",
            "METRICS_PORT": str(self.port),
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.argv, env=self._environment, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def signal(self, number: int) -> None:
        """Send the process a signal; nothing happens where it has ended."""
        assert self._process is not None
        self._process.send_signal(number)

    def ended(self) -> int | None:
        """The exit code (negative: the signal that killed it); None while it runs."""
        assert self._process is not None
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def answer(self, path: str) -> tuple[int, str]:
        """Code and body of an HTTP answer; code 0 where there is none yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def wait_ready(self) -> None:
        def ready() -> bool:
            assert self.ended() is None, f"the operator ended: {self.log.read_text()}"
            return self.answer("/readyz")[0] == 200

        eventually(ready, 90)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.answer("/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)
