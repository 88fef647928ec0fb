"""A client of one tritonserver: readiness, metadata of the server and the model, inference."""

import http.client
import json
import re
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from grpc import StatusCode
from tritonclient.grpc import InferenceServerClient, InferInput, InferRequestedOutput, InferResult
from tritonclient.utils import InferenceServerException

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract import onnx_words
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Load
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.measuring.memory import used_bytes
from triton_converters.measuring.settings import SETTINGS
from triton_converters.model_config.data_types import strings, triton_type

LOST_STUB = "Stub process"
"""Triton's words if the process of a Python-based backend died or got no processor time for seconds."""
ANSWER_CODES = frozenset(
    str(code)
    for code in (
        StatusCode.UNKNOWN,
        StatusCode.INTERNAL,
        StatusCode.INVALID_ARGUMENT,
        StatusCode.NOT_FOUND,
        StatusCode.ALREADY_EXISTS,
        StatusCode.UNIMPLEMENTED,
    )
)
"""Codes with which tritonserver judges a request. It also uses UNAVAILABLE, for a model that is unloaded as the server
stops; like all other codes, that says nothing about the model."""
LOST_WORDS = ("Received RST_STREAM", "Received http2 header", "Stream removed", "recvmsg:", "sendmsg:", "Socket closed")
"""Beginnings of gRPC's own messages under codes that tritonserver uses too. An error that gRPC makes on the client's
side has the same metadata and debug string as one from the server: only code and message tell them apart."""
TOO_LARGE = "message larger than max"
"""gRPC's words about a request or an answer beyond 2 GiB: RESOURCE_EXHAUSTED, and the same every time."""
RAISED = re.compile(
    r"Failed to process the request\(s\) for model '[^']*', message: (?:\w+: )?(.*?)(?:\n\nAt:\n.*)?", re.DOTALL
)
"""How Triton's Python backend answers for a model that raised an exception."""
GRPC_PORT, METRICS_PORT = 8001, 8002
"""tritonserver's default ports: even if HTTP is measured, the gates send inference requests through gRPC."""


@dataclass(frozen=True)
class Endpoint:
    """A server's address."""

    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> "Endpoint":
        """Parse ``host:port``; IPv6 addresses are in brackets."""
        host, _, port = url.rpartition(":")
        return cls(host.strip("[]"), int(port))

    def resolved(self) -> "Endpoint":
        """Return the endpoint with an address instead of a name.

        perf_analyzer opens one connection for each concurrent request and resolves a name for each, inside the first
        measured requests: with a slow DNS some start late and the point is measured at a lower concurrency. IPv4 is
        preferred, because tritonserver listens on it by default. Raises StageError(ServerUnreachable) if the name has
        no address.
        """
        first = min(self._addresses(), key=lambda entry: entry[0] != socket.AF_INET)
        return Endpoint(str(first[4][0]), self.port)

    def _addresses(self) -> list[Any]:
        pauses = iter(SETTINGS.lookup_pauses)
        while True:
            try:
                return list(socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM))
            except OSError as error:
                pause = next(pauses, None)
                if pause is None:
                    message = (
                        f"the server's name {self.host} has no address ({error}). Nothing is known of the server: does"
                        " the cluster's DNS answer this pod, on another port than 53 or 5353? See docs/clusters.md"
                    )
                    raise StageError(Reason.SERVER_UNREACHABLE, message, final=False) from error
                print(f"{self.host} has no address ({error}); it is looked up again in {pause:g} s", flush=True)
                time.sleep(pause)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Server:
    """A client of one model on one server; every method raises StageError(ServerCrashed) if nothing answers."""

    def __init__(self, load: Load, model: str, members: Sequence[str] = ()) -> None:
        """Look the server up. ``members``: the models of an ensemble, as far as they are known.

        Raises StageError(ServerUnreachable) if its name has no address.
        """
        self.model = model
        self._members = tuple(members)
        self.http = Endpoint.parse(load.http_url).resolved()
        self.load = Endpoint.parse(load.url).resolved()
        """The endpoint that perf_analyzer measures."""
        grpc = self.load if load.protocol == "grpc" else Endpoint(self.http.host, GRPC_PORT)
        self._client = InferenceServerClient(str(grpc))
        metrics = load.metrics_url or str(Endpoint(self.http.host, METRICS_PORT))
        self._metrics = Endpoint.parse(metrics).resolved()

    def wait_ready(self, seconds: float = SETTINGS.ready_seconds) -> None:
        """Return once the model's ready URL answers 200; the server's would do so even with an empty repository.

        Raises StageError(ServerCrashed) if it does not within ``seconds``.
        """
        path = f"/v2/models/{self.model}/ready"
        deadline = time.monotonic() + seconds
        told = time.monotonic()
        while True:
            try:
                answer = f"answers {self._get(path)[0]}"
            except OSError as error:
                answer = f"does not answer ({error})"
            if answer == "answers 200":
                return
            if time.monotonic() >= deadline:
                raise _gone(f"http://{self.http}{path} {answer} after {seconds:g} s; see the server's log")
            if time.monotonic() >= told:
                told += SETTINGS.told_seconds
                print(f"waiting for model {self.model}: http://{self.http}{path} {answer}", flush=True)
            time.sleep(SETTINGS.poll_seconds)

    def version(self) -> str:
        """Return tritonserver's version, such as 2.51.0."""
        return str(self._document("/v2")["version"])

    def signature(self) -> Signature:
        """Return names, types and dimensions as the server declares them, without the batch dimension."""
        metadata = self._document(f"/v2/models/{self.model}")
        max_batch_size = int(self.config().get("max_batch_size", 0))
        skipped = 1 if max_batch_size else 0
        inputs, outputs = (
            tuple(Tensor(each["name"], each["datatype"], tuple(each["shape"][skipped:])) for each in metadata[group])
            for group in ("inputs", "outputs")
        )
        return Signature(inputs, outputs, max_batch_size)

    def config(self) -> dict[str, Any]:
        """Return the loaded model's configuration, in which the server has resolved KIND_AUTO."""
        return self._document(f"/v2/models/{self.model}/config")

    def configs(self) -> list[dict[str, Any]]:
        """Return the configurations of the models that compute: of an ensemble's steps, and of its other members."""
        own = self.config()
        steps = [step["model_name"] for step in own.get("ensemble_scheduling", {}).get("step", ())]
        names = dict.fromkeys((*steps, *self._members)) if steps else ()
        return [self._document(f"/v2/models/{name}/config") for name in names] or [own]

    def used_memory(self, device: str) -> int:
        """Return the bytes of ``device``, gpu or cpu, in use now by the server's metrics; 0 if they are unknown."""
        try:
            _, body = _ask(self._metrics, "GET", "/metrics", SETTINGS.metrics_seconds)
        except OSError:
            return 0
        return used_bytes(body.decode(errors="replace"), device)

    def reload(self, config: str) -> str:
        """Load the model with another configuration, given as JSON; return why the server refuses it, or nothing.

        Only a server with --model-control-mode=explicit can do so. If it refuses, the model stays as it was.

        Raises StageError: ServerCrashed if the server ended while it loaded the model, ServerUnreachable if it hangs.
        """
        body = json.dumps({"parameters": {"config": config}})
        seconds = SETTINGS.load_seconds
        try:
            status, answer = _ask(self.http, "POST", f"/v2/repository/models/{self.model}/load", seconds, body)
        except TimeoutError as error:
            message = f"the server hangs: it did not load {self.model} within {seconds} s; see the server's log"
            raise StageError(Reason.SERVER_UNREACHABLE, message, final=False) from error
        except OSError as error:
            raise _gone(f"the server ended while it loaded {self.model} ({error}); see the server's log") from error
        return "" if status == http.client.OK else _error(answer.decode(errors="replace"))

    def infer(self, inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        """Send one request, in the shapes that the server declares, and return the outputs by name.

        Raises StageError: InferenceFailed with the server's message, or for an answer that cannot be read, such as a
        string that is cut; ServerUnreachable if no answer comes.
        """
        tensors = []
        for name, array in inputs.items():
            tensor = InferInput(name, list(array.shape), triton_type(array.dtype))
            given = array.astype(object) if array.dtype.kind == "U" else array
            tensor.set_data_from_numpy(numpy.ascontiguousarray(given))
            tensors.append(tensor)
        response = self._answer(tensors, [InferRequestedOutput(name) for name in outputs])
        return {name: self._read(response, name) for name in outputs}

    def _read(self, response: InferResult, name: str) -> Array:
        try:
            array = response.as_numpy(name)
            if array is not None:
                return strings(array) if array.dtype.hasobject else array
            why = f"lacks the output {name}"
        # Of lengths that do not fit, the client raises struct.error too.
        except (ValueError, struct.error) as error:
            why = f"holds an output {name} that cannot be read: {error}"
        raise StageError(Reason.INFERENCE_FAILED, f"the server's answer for model {self.model} {why}")

    def _answer(self, inputs: list[InferInput], outputs: list[InferRequestedOutput]) -> InferResult:
        """Return the server's answer; if none comes, send the request again, since inference changes nothing."""
        pauses = iter(SETTINGS.resend_pauses)
        while True:
            try:
                return self._client.infer(self.model, inputs, outputs=outputs, client_timeout=SETTINGS.answer_seconds)
            except InferenceServerException as error:
                words = error.message() or ""
                if self._is_gone() or LOST_STUB in words:
                    raise _gone(f"the server ended during a request: {words}; see the server's log") from error
                if _is_answer(error.status(), words):
                    said = own_words(words)
                    raise StageError(
                        Reason.INFERENCE_FAILED, f"tritonserver refused a request to model {self.model}: {said}"
                    ) from error
                pause = next(pauses, None)
                if pause is None:
                    times = len(SETTINGS.resend_pauses) + 1
                    message = f"a request to model {self.model} was sent {times} times and got no answer: {words}"
                    raise StageError(Reason.SERVER_UNREACHABLE, message, final=False) from error
                print(f"a request got no answer ({words}); it is sent again in {pause:g} s", flush=True)
                time.sleep(pause)

    def _is_gone(self) -> bool:
        try:
            self._get("/v2/health/live")
        except OSError:
            return True
        return False

    def _document(self, path: str) -> dict[str, Any]:
        try:
            status, body = self._get(path)
        except OSError as error:
            raise _gone(f"http://{self.http} does not answer ({error}); see the server's log") from error
        if status != http.client.OK:
            message = f"http://{self.http}{path} answers {status}: {body.decode(errors='replace')[:300]}"
            raise _gone(message)
        return dict(json.loads(body))

    def _get(self, path: str) -> tuple[int, bytes]:
        """Return status and body; raises OSError if nothing answers."""
        return _ask(self.http, "GET", path, SETTINGS.http_seconds)


def own_words(message: str) -> str:
    """Return what a model of the Python backend raised, or ONNX Runtime said, without the backend's words around it."""
    raised = RAISED.fullmatch(message)
    return raised[1] if raised else onnx_words.own(message)


def _ask(endpoint: Endpoint, method: str, path: str, seconds: float, body: str | None = None) -> tuple[int, bytes]:
    """Return status and body of one answer; raises OSError if nothing, or too much, comes within ``seconds``."""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=seconds)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        answer = response.read(SETTINGS.largest_answer_bytes + 1)
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
    if len(answer) > SETTINGS.largest_answer_bytes:
        raise OSError(f"the answer is longer than {SETTINGS.largest_answer_bytes} bytes")
    return response.status, answer


def _is_answer(status: str | None, words: str) -> bool:
    """Whether an error judges the request; ``status``: None if tritonclient itself refuses it."""
    if TOO_LARGE in words:
        return True
    return status is None or (status in ANSWER_CODES and not words.startswith(LOST_WORDS))


def _error(answer: str) -> str:
    """Return Triton's own words from the body of an error."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return answer or "no reason given"


def _gone(message: str) -> StageError:
    """Return a StageError that is not final: another run may reach the server again."""
    return StageError(Reason.SERVER_CRASHED, message, final=False)
