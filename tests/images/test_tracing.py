"""Traces and the log of requests of a real tritonserver, with the arguments that a server's pod has."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton

from tests.images.server import Server, wait_ready
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_spec

pytestmark = pytest.mark.images
MODEL = "onnxruntime_batch"
REQUEST = "the-request-of-a-user"
TRACE = "0af7651916cd43dd8448eb211c80319c"
SENT_SECONDS = 60.0
"""tritonserver sends what it has every few seconds."""


@pytest.fixture
def collector() -> Iterator[tuple[str, "Queue[Any]"]]:
    """The URL of a server that takes OTLP over HTTP, as JSON, and what it was sent."""
    taken: Queue[Any] = Queue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.put((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", taken
    server.shutdown()
    server.server_close()


def arguments(endpoint: str) -> list[str]:
    """What the operator adds to the arguments of a server that is to tell of its requests."""
    cluster = Cluster(
        a_spec(serving={"tracing": True, "arguments": ["--trace-config=rate=1", "--log-verbose=1"]}),
        settings=replace(SETTINGS, tracing_endpoint=endpoint),
    )
    cluster.settle()
    (deployment,) = cluster.of_kind("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [each for each in container["args"] if each.startswith(("--trace", "--log"))]


def test_a_request_is_traced_and_logged(
    repositories: Path, start: Callable[..., Server], collector: tuple[str, "Queue[Any]"]
) -> None:
    endpoint, taken = collector
    alone = ("--model-control-mode=explicit", f"--load-model={MODEL}")
    server = wait_ready(start(repositories / "good", *alone, *arguments(endpoint)))
    client = server.client()
    metadata = client.get_model_metadata(MODEL)
    inputs = []
    for each in metadata.inputs:
        tensor = triton.InferInput(each.name, [1, *(max(size, 1) for size in each.shape[1:])], each.datatype)
        tensor.set_data_from_numpy(np.zeros(tensor.shape(), triton.triton_to_np_dtype(each.datatype)))
        inputs.append(tensor)
    client.infer(MODEL, inputs, request_id=REQUEST, headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
    path, sent = taken.get(timeout=SENT_SECONDS)
    assert path == "/v1/traces"
    (resource,) = sent["resourceSpans"]
    source = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    assert (source["service.namespace"], source["service.name"]) == ("vision", "digits")
    spans = {each["name"]: each for scope in resource["scopeSpans"] for each in scope["spans"]}
    assert {"InferRequest", MODEL, "compute"} <= spans.keys()
    assert {each["traceId"] for each in spans.values()} == {TRACE}
    attributes = {each["key"]: each["value"] for each in spans[MODEL]["attributes"]}
    assert attributes["triton.request_id"] == {"stringValue": REQUEST}
    assert f"request id: {REQUEST}, model: {MODEL}" in server.log()
