"""What a client of a serving server cannot reach: the interfaces that change the server or the node's memory."""

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from tests.conftest import Attack
from tests.images.server import Server

pytestmark = pytest.mark.images

GRPC: dict[str, Callable[[triton.InferenceServerClient], Any]] = {
    "model-repository, index": lambda client: client.get_model_repository_index(),
    "model-repository, load": lambda client: client.load_model("onnxruntime_batch"),
    "shared-memory, status": lambda client: client.get_system_shared_memory_status(),
    "shared-memory, register": lambda client: client.register_system_shared_memory("mine", "/mine", 64),
    "logging, settings": lambda client: client.update_log_settings({"log_verbose_level": 9}),
    "trace, settings": lambda client: client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]}),
}
HTTP = {
    "model-repository, index": "v2/repository/index",
    "model-repository, unload": "v2/repository/models/onnxruntime_batch/unload",
    "shared-memory, register": "v2/systemsharedmemory/region/mine/register",
    "logging, settings": "v2/logging",
    "trace, settings": "v2/trace/setting",
}


@pytest.mark.parametrize("interface", GRPC)
def test_closed_over_grpc(good: Server, attack: Attack, interface: str) -> None:
    with pytest.raises(InferenceServerException) as refused:
        GRPC[interface](good.client())
    attack("a client", f"gRPC, {interface}", str(refused.value))
    assert "This protocol is restricted" in str(refused.value)


@pytest.mark.parametrize("interface", HTTP)
def test_closed_over_http(good: Server, attack: Attack, interface: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", good.ports[0], timeout=10)
    connection.request("POST", f"/{HTTP[interface]}", body=b"{}")
    answer = connection.getresponse()
    said = json.loads(answer.read())["error"]
    attack("a client", f"HTTP, {interface}", f"{answer.status} {said}")
    assert answer.status == 403
    assert "restricted" in said


def test_what_measuring_needs_stays_open(good: Server) -> None:
    client = good.client()
    assert client.get_inference_statistics("onnxruntime_batch").model_stats
    assert client.get_model_config("onnxruntime_batch").config.name == "onnxruntime_batch"
