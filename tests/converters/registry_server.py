"""A real registry on loopback, distribution's, with one account; and what pushes artifacts as ORAS does."""

import base64
import gzip
import hashlib
import io
import json
import socket
import ssl
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from hack.devcluster.binaries import program
from tests.converters.https_server import HOST

USER, PASSWORD = "ann", "a-secret-that-nobody-else-may-read"
HASH = "$2b$05$abcdefghijklmnopqrstuuAVa7yTMf0Ua1wJXHweYh2.rKG2AY68."
"""Of the password, by bcrypt."""
TITLE, UNPACK = "org.opencontainers.image.title", "io.deis.oras.content.unpack"
PLAIN, ARCHIVE = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"
"""ORAS's media types of a file and of a folder."""
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def a_docker_config(host: str, user: str = USER, password: str = PASSWORD) -> str:
    """What `kubectl create secret docker-registry` writes."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"username": user, "password": password, "auth": pair}}}, indent=2)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def archive(files: Mapping[str, bytes]) -> bytes:
    """A compressed tar of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def layer(title: str, content: bytes, is_folder: bool = False) -> dict[str, Any]:
    """What a manifest says of a file, or of an archive with a folder."""
    notes = {TITLE: title} | ({UNPACK: "true"} if is_folder else {})
    media = ARCHIVE if is_folder else PLAIN
    return {"mediaType": media, "digest": sha256(content), "size": len(content), "annotations": notes}


def manifest(*layers: dict[str, Any]) -> bytes:
    config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": sha256(b"{}"), "size": 2}
    body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": list(layers)}
    return json.dumps(body).encode()


@dataclass
class Registry:
    """A registry with the repository `acme/ocr`."""

    host: str
    folder: Path
    """Where its blobs are."""
    pool: urllib3.PoolManager

    def uri(self, reference: str = ":v1") -> str:
        return f"oci://{self.host}/acme/ocr{reference}"

    def push(self, tag: str, files: Mapping[str, bytes], folders: Mapping[str, bytes] | None = None) -> str:
        """Push files, and archives of folders, under a tag; return the manifest's digest."""
        layers = [layer(name, self._blob(content)) for name, content in files.items()]
        layers += [layer(name, self._blob(content), True) for name, content in (folders or {}).items()]
        return self.push_manifest(tag, manifest(*layers))

    def push_manifest(self, tag: str, body: bytes, media: str = MANIFEST) -> str:
        self._blob(b"{}")
        answer = self._ask("PUT", f"https://{self.host}/v2/acme/ocr/manifests/{tag}", body, media)
        assert answer.status == 201, answer.data
        return sha256(body)

    def path(self, content: bytes) -> Path:
        """The file in which the registry keeps a blob."""
        (found,) = self.folder.rglob(f"{sha256(content).removeprefix('sha256:')}/data")
        return found

    def _blob(self, content: bytes) -> bytes:
        begun = self._ask("POST", f"https://{self.host}/v2/acme/ocr/blobs/uploads/")
        url = f"{begun.headers['Location']}&digest={sha256(content)}"
        assert self._ask("PUT", url, content, "application/octet-stream").status == 201
        return content

    def _ask(self, method: str, url: str, body: bytes = b"", media: str = "") -> urllib3.BaseHTTPResponse:
        headers = urllib3.make_headers(basic_auth=f"{USER}:{PASSWORD}") | ({"Content-Type": media} if media else {})
        return self.pool.request(method, url, body=body, headers=headers)


@contextmanager
def serving(
    folder: Path, certificate: Path, authority: Path, host: str = HOST, *, is_public: bool = False
) -> Iterator[Registry]:
    """Run the registry until the end of the block. ``certificate``: in PEM, with its key.

    ``is_public``: whether it asks nobody for an account.
    """
    with socket.create_server((host, 0)) as listener:
        address = f"{host}:{listener.getsockname()[1]}"
    (folder / "accounts").write_text(f"{USER}:{HASH}\n")
    settings: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"addr": address, "secret": "s", "tls": {"certificate": str(certificate), "key": str(certificate)}},
    }
    if not is_public:
        settings["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "accounts")}}
    (folder / "settings.json").write_text(json.dumps(settings))
    with (folder / "output").open("w") as output:
        command = [str(program("registry")), "serve", str(folder / "settings.json")]
        server = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait(server, address, folder / "output")
            tls = ssl.create_default_context(cafile=str(authority))
            yield Registry(address, folder / "storage", urllib3.PoolManager(ssl_context=tls))
        finally:
            server.kill()
            server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, output: Path) -> None:
    host, _, port = address.rpartition(":")
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex((host, int(port))) == 0:
                return
        assert server.poll() is None, output.read_text()
        time.sleep(0.05)
    raise TimeoutError(output.read_text())
