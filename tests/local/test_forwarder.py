"""What `check --serve` leads clients by: from ports of this machine into the network of the servers."""

import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import RemoteDisconnected
from pathlib import Path

import pytest

from tests.local.pods import Cluster, a_container, an_owner
from triton_local.boxed import Box
from triton_local.plain import Plain
from triton_local.runtime import Runtime

HOST, ADDRESS = "127.0.0.1", "127.77.0.1"


def a_free_port(listening: socket.socket) -> int:
    listening.bind((HOST, 0))
    listening.listen()
    port: int = listening.getsockname()[1]
    return port


def asked(port: int, path: str = "/") -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=60) as answer:
        words: str = answer.read().decode()
    return words


@contextmanager
def forwarded(made: Runtime, listening: socket.socket, server: str, probe: str, folder: Path) -> Iterator[None]:
    """Lead clients of a port to a pod that runs a script, once another script there succeeds."""
    ready = {"exec": {"command": ["sh", "-c", probe]}, "periodSeconds": 0.1, "timeoutSeconds": 600}
    cluster = Cluster(folder, runtime=made)
    with closing(cluster), ExitStack() as stack:
        pod = cluster.start(an_owner(main=a_container("server", server, readinessProbe=ready), kind="Deployment"))
        cluster.until(pod, ready=True)
        stack.callback(made.forwarder(ADDRESS, [listening]).communicate)
        yield


@pytest.mark.parametrize("runtime", [Box, Plain])
def test_clients_reach_a_server_that_nothing_else_reaches(runtime: Callable[[], Runtime], tmp_path: Path) -> None:
    with socket.socket() as listening:
        port = a_free_port(listening)
        server = f"cd /usr/share/common-licenses && exec python3 -m http.server --bind {ADDRESS} {port}"
        asks = f"import socket; socket.create_connection(('{ADDRESS}', {port}))"
        with forwarded(runtime(), listening, server, f'python3 -c "{asks}"', tmp_path):
            for _ in range(3):
                assert "GNU GENERAL PUBLIC LICENSE" in asked(port, "/GPL-3")


def test_without_a_server_a_client_is_turned_away_and_the_next_is_let_in(tmp_path: Path) -> None:
    with socket.socket() as listening:
        port = a_free_port(listening)
        with forwarded(Box(), listening, "sleep 600", "true", tmp_path):
            for _ in range(2):
                with pytest.raises((RemoteDisconnected, ConnectionResetError)):
                    asked(port)
