"""Where tritonserver listens: in a network without IPv4 too."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.images.server import Server
from triton_operator.resources.server import ON_IPV6

pytestmark = pytest.mark.images

WITHOUT_IPV4 = ("unshare", "--net", "sh", "-c", 'ip link set lo up; ip address del 127.0.0.1/8 dev lo; exec "$@"', "sh")
CONNECT = "import socket, sys; socket.create_connection(('::1', int(sys.argv[1])), 2).close()"
PATIENCE_SECONDS = 120


def listens(server: Server, port: int) -> bool:
    """Whether something takes connections to ::1, as seen from the server's network."""
    inside = ["nsenter", f"--net=/proc/{server.process.pid}/ns/net", "python3", "-c", CONNECT, str(port)]
    return subprocess.run(inside, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("flags", "expected"), [((), [False, True, False]), (ON_IPV6, [True, True, True])])
def test_http_and_metrics_need_to_be_told_of_ipv6_and_grpc_does_not(
    start: Callable[..., Server], tmp_path: Path, flags: tuple[str, ...], expected: list[bool]
) -> None:
    tmp_path.chmod(0o755)
    server = start(tmp_path, *flags, within=WITHOUT_IPV4)
    deadline = time.monotonic() + PATIENCE_SECONDS
    # It listens for metrics last.
    while "Started Metrics Service" not in server.log():
        assert server.process.poll() is None, server.log()
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.2)
    assert [listens(server, port) for port in server.ports] == expected
