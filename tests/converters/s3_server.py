"""A real server with S3's API on loopback, Versity's gateway: it checks signatures, and keeps objects as files."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.devcluster.binaries import program
from tests.converters.https_server import HOST

KEY, SECRET = "the-key", "a-secret-that-nobody-else-may-read"
PUBLIC = """{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"],
 "Resource": ["arn:aws:s3:::models", "arn:aws:s3:::models/*"]}]}"""


@dataclass
class Bucket:
    """The bucket `models`."""

    url: str
    folder: Path
    """Its objects."""
    metadata: Path

    def put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        tag = self.metadata / name / "meta" / "etag"
        tag.parent.mkdir(parents=True, exist_ok=True)
        tag.write_text(f'"{abs(hash(content)):032x}"')

    def make_public(self) -> None:
        (self.metadata / "meta").mkdir(parents=True, exist_ok=True)
        (self.metadata / "meta" / "policy").write_text(PUBLIC)


@contextmanager
def serving(folder: Path, certificate: Path, address: str = HOST) -> Iterator[Bucket]:
    """Run the server until the end of the block. ``certificate``: in PEM, with its key."""
    with socket.create_server((address, 0)) as listener:
        port = listener.getsockname()[1]
    bucket = Bucket(f"https://{address}:{port}", folder / "data" / "models", folder / "side" / "models")
    bucket.folder.mkdir(parents=True)
    bucket.metadata.mkdir(parents=True)
    command = [
        str(program("versitygw")), "--port", f"{address}:{port}", "--cert", str(certificate), "--key", str(certificate),
        "--quiet", "posix", "--sidecar", str(folder / "side"), str(folder / "data"),
    ]  # fmt: skip
    environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    output = (folder / "output").open("w")
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(server, (address, port), folder / "output")
        yield bucket
    finally:
        server.kill()
        server.wait()
        output.close()


def _wait(server: subprocess.Popen[bytes], place: tuple[str, int], output: Path) -> None:
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(place) == 0:
                return
        assert server.poll() is None, output.read_text()
        time.sleep(0.05)
    raise TimeoutError(output.read_text())
