"""What the startup probe asks of an image, run for real without a server beside it."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from triton_operator.resources.start_probe import WAIT, start_probe


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/v2/models/digits/ready" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def test_it_returns_once_the_model_is_ready() -> None:
    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        argv = [*WAIT, "/v2/models/digits/ready", str(server.server_port), "60"]
        done = subprocess.run(argv, env={"PATH": f"{Path(sys.executable).parent}:/bin"}, check=False, timeout=60)
        server.shutdown()
    assert done.returncode == 0


def test_an_image_without_python_is_told(tmp_path: Path) -> None:
    argv = [each.replace("/dev/termination-log", str(tmp_path / "words")) for each in WAIT]
    done = subprocess.run(argv, executable="/bin/sh", env={"PATH": str(tmp_path)}, check=False, timeout=60)
    assert done.returncode == 1
    assert "lacks python3" in (tmp_path / "words").read_text()


def test_the_kubelet_neither_ends_nor_repeats_the_program() -> None:
    probe = start_probe("/v2/models/digits/ready", 8000)
    assert probe["exec"]["command"][-3:-1] == ["/v2/models/digits/ready", "8000"]
    assert probe["failureThreshold"] == 1
    assert probe["timeoutSeconds"] >= 3600
