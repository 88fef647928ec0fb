"""MLflow's server on loopback: the part of its API that downloads use, and the real one, with one account."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import urllib3

from tests.converters.environments import environment
from tests.converters.https_server import HOST

USER, PASSWORD = "admin", "a-secret-that-nobody-else-may-read"
START_SECONDS = 300
"""How long the real server may take to start; 11 to 17 s on a quiet machine."""
API, ARTIFACTS = "/api/2.0/mlflow/", "/api/2.0/mlflow-artifacts/artifacts"
FOLDER = "1/models/m-1/artifacts"


@dataclass
class Mlflow:
    """One registered model, `fraud`, whose version 7 has the alias `champion`."""

    files: dict[str, bytes]
    number: str = "7"
    source: str = "models:/m-1"
    status: str = "READY"
    location: str = f"mlflow-artifacts:/{FOLDER}"
    """Where the files are, of the version and of the run `r-1`."""
    wrong: dict[str, Any] = field(default_factory=dict)
    """Answers by the beginning of a request: a status with a body, a body, or what is to be JSON."""
    seen: list[str] = field(default_factory=list)
    """The requests, each with its Authorization header."""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request."""
        self.seen.append(f"{path} {authorization}".strip())
        found = next((answer for start, answer in self.wrong.items() if path.startswith(start)), None)
        if found is None:
            found = self._told(path)
        if isinstance(found, tuple):
            return found[0], {}, found[1]
        return 200, {}, found if isinstance(found, bytes) else dumps(found).encode()

    def _told(self, path: str) -> Any:
        parts = urlsplit(path)
        asked = {name: value[0] for name, value in parse_qs(parts.query).items()}
        method = unquote(parts.path)
        if method.startswith(f"{ARTIFACTS}/{FOLDER}/"):
            name = method.removeprefix(f"{ARTIFACTS}/{FOLDER}/")
            return self.files.get(name, (404, b"{}"))
        if method == ARTIFACTS:
            return self._listed(asked["path"])
        return self._registry(method.removeprefix(API), asked)

    def _registry(self, method: str, asked: dict[str, str]) -> Any:
        if method == "runs/get" and asked == {"run_id": "r-1"}:
            return {"run": {"info": {"artifact_uri": self.location}}}
        if asked["name"] != "fraud" or asked.get("version", self.number) != self.number:
            return 404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "it is not there"}'
        if asked.get("alias", "champion") != "champion":
            return 400, b'{"error_code": "INVALID_PARAMETER_VALUE", "message": "it is not there"}'
        if method == "model-versions/get-download-uri":
            return {"artifact_uri": self.location}
        version = {"name": "fraud", "version": self.number, "status": self.status, "source": self.source}
        return {"model_version": version}

    def _listed(self, path: str) -> Any:
        if not f"{path}/".startswith(f"{FOLDER}/"):
            return {}
        above = f"{path}/".removeprefix(f"{FOLDER}/")
        below = {name.removeprefix(above): content for name, content in self.files.items() if name.startswith(above)}
        folders = {name.partition("/")[0] for name in below if "/" in name}
        found = [{"path": name, "is_dir": True} for name in folders]
        found += [
            {"path": name, "is_dir": False, "file_size": len(content)}
            for name, content in below.items()
            if "/" not in name
        ]
        return {"files": found} if found else {}


@dataclass
class Real:
    """A running server."""

    host: str
    folder: Path
    environment: Path
    """The virtual environment with MLflow's library."""
    authority: Path
    process: int
    """The server's process group."""

    def run(self, *arguments: str, input: bytes = b"") -> str:
        """Run Python with MLflow's library, as the account; return what it prints last. ``arguments``: Python's own."""
        names = {"URI": f"https://{self.host}", "USERNAME": USER, "PASSWORD": PASSWORD}
        variables = {f"MLFLOW_TRACKING_{name}": value for name, value in names.items()}
        variables |= {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(self.authority), "HOME": str(self.folder)}
        command = [str(self.environment / "bin/python"), *arguments]
        done = subprocess.run(command, env=variables, cwd=self.folder, capture_output=True, check=False, input=input)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip().rpartition("\n")[2]

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """Give an alias to a version, and take it from any other."""
        pool = urllib3.PoolManager(ca_certs=str(self.authority))
        body = {"name": name, "alias": alias, "version": version}
        headers = urllib3.make_headers(basic_auth=f"{USER}:{PASSWORD}")
        answer = pool.request("POST", f"https://{self.host}{API}registered-models/alias", json=body, headers=headers)
        assert answer.status == 200, answer.data


@contextmanager
def serving(folder: Path, certificate: Path, authority: Path, *arguments: str, address: str = HOST) -> Iterator[Real]:
    """Run the real server until the end of the block. ``certificate``: in PEM, with its key.

    Raises OSError if the address is none of this machine.
    """
    with socket.create_server((address, 0)) as listener:
        port = listener.getsockname()[1]
    installed = environment("mlflow")
    command = [
        str(installed / "bin/mlflow"), "server", "--app-name", "basic-auth", "--host", address, "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/store.db", *arguments,
        "--uvicorn-opts", f"--ssl-keyfile {certificate} --ssl-certfile {certificate}",
    ]  # fmt: skip
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "s",
        # Its workers would outlive it.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    with (folder / "output").open("w") as output:
        server = subprocess.Popen(
            command, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait(server, f"https://{address}:{port}/health", authority, folder / "output")
            yield Real(f"{address}:{port}", folder, installed, authority, server.pid)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(server: subprocess.Popen[bytes], url: str, authority: Path, output: Path) -> None:
    pool = urllib3.PoolManager(ca_certs=str(authority), retries=False)
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        try:
            if pool.request("GET", url).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            assert server.poll() is None, output.read_text()
            time.sleep(0.2)
    raise TimeoutError(output.read_text())
