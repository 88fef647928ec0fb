"""Ports of this machine that lead to the server that is ready, whichever that is when a client comes."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
"""How much is read at a time."""


class _Connection(socketserver.BaseRequestHandler):
    """One client's connection, which lasts until both sides have said all."""

    server: "_Port"

    def handle(self) -> None:
        address = self.server.leads_to()
        if address is None:
            return
        with suppress(OSError), socket.create_connection((address, self.server.number)) as server:
            answers = threading.Thread(target=_copy, args=(server, self.request), daemon=True)
            answers.start()
            _copy(self.request, server)
            answers.join()


class _Port(socketserver.ThreadingTCPServer):
    """One port."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    """How many clients may wait to be let in."""

    def __init__(self, number: int, leads_to: Callable[[], str | None]) -> None:
        self.number = number
        self.leads_to = leads_to
        super().__init__((HOST, number), _Connection, bind_and_activate=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client may leave at any moment."""


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on what one side says, until it has said all."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def reserved(*ports: int) -> Iterator[Callable[[Callable[[], str | None]], None]]:
    """Keep ports until the block ends; yield what lets clients in, to the address that its argument returns then.

    None as address: there is no server, and the client is turned away. Raises OSError for a port that is taken.
    """
    with ExitStack() as stack:
        made: list[_Port] = []
        for number in ports:
            port = stack.enter_context(_Port(number, lambda: None))
            try:
                port.server_bind()
            except OSError as error:
                raise OSError(error.errno, error.strerror, f"{HOST}:{number}") from error
            made.append(port)

        def open_to(leads_to: Callable[[], str | None]) -> None:
            for port in made:
                port.leads_to = leads_to
                port.server_activate()
                threading.Thread(target=port.serve_forever, daemon=True).start()
                stack.callback(port.shutdown)

        yield open_to
