"""Ports that lead to whichever server is ready."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from triton_local.forwarder import HOST, reserved

ADDRESSES = ("127.77.255.1", "127.77.255.2")


def a_free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        port: int = found.getsockname()[1]
    return port


@contextmanager
def answering(address: str, port: int) -> Iterator[None]:
    """A server that waits for the end of what a client says, and answers with its own address and that."""
    with socket.create_server((address, port)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                said = b"".join(iter(lambda: client.recv(1000), b""))
                client.sendall(f"{address} heard {said.decode()}".encode())

        threading.Thread(target=answer, daemon=True).start()
        yield


def asked(port: int) -> str:
    """What is answered; empty: the client was turned away."""
    answer = b""
    with socket.create_connection((HOST, port), timeout=10) as client, suppress(ConnectionResetError, BrokenPipeError):
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(1000), b""))
    return answer.decode()


def test_each_client_gets_to_the_server_that_is_ready_then() -> None:
    port, ready = a_free_port(), [*ADDRESSES]
    with answering(ADDRESSES[0], port), answering(ADDRESSES[1], port), reserved(port) as open_to:
        open_to(lambda: ready[0])
        assert asked(port) == f"{ADDRESSES[0]} heard hello"
        ready.pop(0)
        assert asked(port) == f"{ADDRESSES[1]} heard hello"


def test_without_a_server_a_client_is_turned_away_and_nothing_breaks() -> None:
    port = a_free_port()
    with reserved(port) as open_to:
        with pytest.raises(ConnectionRefusedError):
            asked(port)
        ready: list[str | None] = [None, ADDRESSES[0]]
        open_to(lambda: ready.pop(0))
        assert asked(port) == ""
        # Nothing answers there.
        assert asked(port) == ""


def test_a_port_of_another_program_is_named_at_once() -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"{HOST}:{port}"), reserved(port):
            raise AssertionError("the port was taken twice")
