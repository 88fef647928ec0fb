"""A real registry on this machine's loopback, without TLS, and what it holds; the same with TLS for who asks for it."""

import hashlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.devcluster.binaries import program

MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json,"
    "application/vnd.oci.image.index.v1+json"
)
STARTED_SECONDS = 30.0


@dataclass(frozen=True)
class Registry:
    """A registry that listens at HOST:PORT, and the folder with its content."""

    host: str
    content: Path

    def manifest(self, repository: str, reference: str) -> bytes:
        """The manifest by tag or digest, as it is stored."""
        return self._get(f"{repository}/manifests/{reference}")

    def pull(self, repository: str, digest: str) -> dict[str, Any]:
        """The manifest of a digest, with its configuration and layers there and unharmed."""
        body = self.manifest(repository, digest)
        assert f"sha256:{hashlib.sha256(body).hexdigest()}" == digest
        manifest: dict[str, Any] = json.loads(body)
        for blob in (manifest["config"], *manifest["layers"]):
            content = self._get(f"{repository}/blobs/{blob['digest']}")
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == blob["digest"]
        return manifest

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(f"http://{self.host}/v2/{path}", headers={"Accept": MANIFESTS})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=60) as response:
            return bytes(response.read())


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """A registry that keeps its content in `folder`, within the block."""
    with _serving(folder, folder / "content", "127.0.0.1", {}) as started:
        yield started


@contextmanager
def secured(registry: Registry, folder: Path, address: str, certificate: Path) -> Iterator[Registry]:
    """The same content by HTTPS, at another address, within the block: a source Job takes nothing else."""
    tls = {"tls": {"certificate": str(certificate), "key": str(certificate)}}
    with _serving(folder, registry.content, address, tls) as started:
        yield started


@contextmanager
def _serving(folder: Path, content: Path, address: str, http: dict[str, Any]) -> Iterator[Registry]:
    with socket.socket() as listener:
        listener.bind((address, 0))
        host = f"{address}:{listener.getsockname()[1]}"
    settings = folder / "registry.json"
    storage = {"filesystem": {"rootdirectory": str(content)}}
    settings.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": host, **http}}))
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    with (folder / "registry.log").open("w") as log:
        process = subprocess.Popen(
            [str(program("registry")), "serve", str(settings)], stdout=log, stderr=log, env=environment
        )
    try:
        _wait(host, folder / "registry.log")
        yield Registry(host, content)
    finally:
        process.terminate()
        process.wait(30)


def _wait(host: str, log: Path) -> None:
    deadline = time.monotonic() + STARTED_SECONDS
    while True:
        try:
            socket.create_connection(tuple(host.split(":")), timeout=1).close()  # type: ignore[arg-type]  # a port as text will do
            return
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
