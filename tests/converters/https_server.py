"""Real servers on loopback: HTTPS with an authority that nobody else trusts, and a proxy that speaks CONNECT."""

import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Protocol

HOST = "127.0.0.1"
TAG = '"version-1"'


class Answering(Protocol):
    """A server with an API of its own."""

    def answer(self, path: str, authorization: str, /) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request."""


@dataclass
class Behaviour:
    """What the server has, and how it misbehaves. Lists hold one entry for each request and are used up."""

    content: bytes = bytes(range(256)) * 4096
    tag: str = TAG
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    """Sent in addition, or instead of the server's own; an empty value leaves the header out."""
    breaks: list[int] = field(default_factory=list)
    """Bytes of the body after which the connection is closed."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Maps a path to the Location that it answers with."""
    pause: float = 0.0
    """Seconds before each byte of a body."""
    authorization: str = ""
    """The Authorization header that is asked for; empty: none."""
    honest_ranges: bool = True
    """False: a range begins one byte late."""
    refuses_ranges: bool = False
    """True: 416 to every range, as of a server without If-Range whose file is shorter by now."""
    hub: Answering | None = None
    """Answers in place of all this."""
    taking: Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]] | None = None
    """Answers in place of all this, by the method, the path and the body of a request."""
    seen: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request, and its path."""

    def ranges(self) -> list[str]:
        return [each.get("Range", "") for each in self.seen]


class _Handler(BaseHTTPRequestHandler):
    behaviour: ClassVar[Behaviour]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        has = self.behaviour
        has.seen.append({**self.headers, "path": self.path})
        status, headers, body = self._found()
        wanted, tag = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")), headers.get("ETag")
        if wanted and has.refuses_ranges:
            status, body = 416, b""
        elif status == 200 and wanted and tag and self.headers.get("If-Range") == tag:
            whole, start = len(body), int(wanted[1]) + (0 if has.honest_ranges else 1)
            headers |= {"Content-Range": f"bytes {start}-{whole - 1}/{whole}"}
            status, body = 206, body[start:]
        self._answer(status, headers, body)

    def _found(self) -> tuple[int, dict[str, str], bytes]:
        has, authorization = self.behaviour, self.headers.get("Authorization", "")
        if has.taking is not None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            return has.taking(self.command, self.path, body)
        if has.hub is not None:
            return has.hub.answer(self.path, authorization)
        if self.path in has.redirects:
            return 302, {"Location": has.redirects[self.path]}, b""
        if has.authorization and authorization != has.authorization:
            return 401, {}, b""
        return (200, {"ETag": has.tag}, has.content) if has.status == 200 else (has.status, {}, b"")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        has = self.behaviour
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers | has.headers).items():
            if value:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = body[: has.breaks.pop(0)] if has.breaks and body else body
        with suppress(OSError):
            if not has.pause:
                self.wfile.write(sent)
            else:
                for byte in sent:
                    self.wfile.write(bytes([byte]))
                    time.sleep(has.pause)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@dataclass
class Server:
    """A running server."""

    port: int
    behaviour: Behaviour
    address: str = HOST

    @property
    def host(self) -> str:
        return f"{self.address}:{self.port}"

    def uri(self, path: str = "models/ocr.onnx") -> str:
        return f"https://{self.host}/{path}"


def make_authority(folder: Path, names: str = f"IP:{HOST}") -> tuple[Path, Path]:
    """Make an authority, and a certificate of ``names`` with its key; return the authority's and the certificate's."""
    openssl = shutil.which("openssl")
    assert openssl

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=an authority",
        "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    run("req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=a server")
    (folder / "names").write_text(f"subjectAltName={names}\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "server.crt", "-days", "2",
        "-extfile", "names")  # fmt: skip
    (folder / "server.pem").write_text((folder / "server.crt").read_text() + (folder / "server.key").read_text())
    return folder / "ca.pem", folder / "server.pem"


@contextmanager
def serving(certificate: Path, behaviour: Behaviour | None = None, address: str = HOST) -> Iterator[Server]:
    """Run a server until the end of the block."""
    handler = type("Handler", (_Handler,), {"behaviour": behaviour or Behaviour()})
    server = ThreadingHTTPServer((address, 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield Server(server.server_address[1], handler.behaviour, address)
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def proxying(
    breaks: Sequence[int] = (), address: str = HOST, sends: Sequence[int] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Run a proxy until the end of the block; yield its URL and the list of the hosts that it connected to.

    ``breaks``: for each of the first connections, the bytes from the server after which it is closed; ``sends``: those
    to the server.
    """
    limits, sent = list(breaks), list(sends)
    connected: list[str] = []
    listener = socket.create_server((address, 0))

    def pump(source: socket.socket, sink: socket.socket, most: int = 2**62) -> None:
        with suppress(OSError):
            while most > 0 and (data := source.recv(min(65536, most))):
                sink.sendall(data)
                most -= len(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def tunnel(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        host = head.split()[1].decode()
        connected.append(host)
        most, least = (each.pop(0) if each else 2**62 for each in (limits, sent))
        name, _, port = host.rpartition(":")
        upstream = socket.create_connection((name, int(port)))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=pump, args=(upstream, client, most), daemon=True).start()
        pump(client, upstream, least)
        if least < 2**62:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=tunnel, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://{address}:{listener.getsockname()[1]}", connected
    finally:
        listener.close()
