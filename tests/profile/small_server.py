"""A server of tritonserver's protocols for the linear model in this process, behind a line that can be cut."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, BaseServer, ThreadingTCPServer
from threading import Thread
from typing import Any

import grpc
import numpy
from linear_model import SIGNATURE, Linear
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import triton_to_np_dtype

from triton_converters.contract.results import Tensor

MODEL = "linear"
LARGEST_MESSAGE = 4096
"""In bytes; a request of the gates is smaller."""


@dataclass
class SmallServer:
    """What a test sets and sees."""

    http_port: int = 0
    grpc_port: int = 0
    cuts: int = 0
    """How many more requests meet a reset connection."""
    errors: list[tuple[grpc.StatusCode, str]] = field(default_factory=list)
    """What the next requests are answered with."""
    hangs: bool = False
    """Whether requests get no answer for as long as the client waits."""
    connections: int = 0
    requests: int = 0
    """Those that arrived."""


@contextmanager
def serving() -> Iterator[SmallServer]:
    """A server, gone at the end."""
    state = SmallServer()
    with ExitStack() as stack:
        inner = grpc.server(
            ThreadPoolExecutor(1, "inference"), options=[("grpc.max_receive_message_length", LARGEST_MESSAGE)]
        )
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(_Inference(state), inner)
        upstream = inner.add_insecure_port("127.0.0.1:0")
        inner.start()
        stack.callback(inner.stop, None)

        class Line(_Line):
            server_port, small = upstream, state

        state.grpc_port = _start(stack, ThreadingTCPServer(("127.0.0.1", 0), Line))
        state.http_port = _start(stack, ThreadingHTTPServer(("127.0.0.1", 0), _Http))
        yield state


def _start(stack: ExitStack, server: BaseServer) -> int:
    """Serve until the stack is left; the port."""
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return int(server.server_address[1])


class _Inference(service_pb2_grpc.GRPCInferenceServiceServicer):
    def __init__(self, state: SmallServer) -> None:
        self.state = state

    def ModelInfer(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - gRPC's name
        self.state.requests += 1
        while self.state.hangs and context.is_active():
            time.sleep(0.01)
        if self.state.errors:
            context.abort(*self.state.errors.pop(0))
        arrays = {
            each.name: numpy.frombuffer(raw, triton_to_np_dtype(each.datatype)).reshape(each.shape)
            for each, raw in zip(request.inputs, request.raw_input_contents, strict=True)
        }
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        types = {tensor.name: tensor.data_type for tensor in SIGNATURE.outputs}
        for name, array in Linear()(arrays).items():
            answer.outputs.add(name=name, datatype=types[name], shape=array.shape)
            answer.raw_output_contents.append(array.tobytes())
        return answer


class _Line(BaseRequestHandler):
    """Carries bytes to the server and back; resets the connection instead of carrying a request that is to be cut."""

    server_port: int
    small: SmallServer

    def handle(self) -> None:
        self.small.connections += 1
        with socket.create_connection(("127.0.0.1", self.server_port)) as server:
            back = Thread(target=_carry, args=(server, self.request))
            back.start()
            cut = self._forward(server)
            # No socket is closed while a thread reads it: its number may be the client's next connection.
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            back.join()
        if cut:
            # With no time to linger, closing sends a reset.
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()

    def _forward(self, server: socket.socket) -> bool:
        """Carry what the client sends; whether a request came that is to be cut."""
        with suppress(OSError):
            while data := self.request.recv(1 << 16):
                if self.small.cuts and MODEL.encode() in data:
                    self.small.cuts -= 1
                    return True
                server.sendall(data)
        return False


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)


def _declared(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "datatype": tensor.data_type, "shape": [-1, *tensor.dims]}


ANSWERS: dict[str, dict[str, object]] = {
    "/v2": {"version": "2.51.0"},
    "/v2/health/live": {},
    f"/v2/models/{MODEL}/ready": {},
    f"/v2/models/{MODEL}/config": {"max_batch_size": SIGNATURE.max_batch_size},
    f"/v2/models/{MODEL}": {
        "inputs": [_declared(tensor) for tensor in SIGNATURE.inputs],
        "outputs": [_declared(tensor) for tensor in SIGNATURE.outputs],
    },
}


class _Http(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(ANSWERS.get(self.path, {})).encode()
        self.send_response(200 if self.path in ANSWERS else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: tests print their own."""
