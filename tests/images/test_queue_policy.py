"""The example of docs/serving.md on a real tritonserver: what a queue policy refuses, and in which words."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
import yaml
from onnx import TensorProto, helper

from tests.images.server import ROOT, Server, wait_ready
from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.results import Signature, Tensor
from triton_converters.model_config.model import Execution, render

pytestmark = pytest.mark.images
MODEL = "queued"
BATCH = 64
"""Of more samples than wait in a test, so that the batcher waits for them to the end of its delay."""
DELAY_SECONDS = 3
"""Longer than the page's timeout: requests wait that long although no other request is in their way."""
ROOM, TIMEOUT_SECONDS = 32, 0.5
"""What the page says of level 2."""
LATE, FULL = "Request timeout expired", "Exceeds maximum queue size"
Answer = tuple[str, float]
"""The error, empty if there is none, and the seconds that it took."""


def overrides() -> str:
    """The text of the page's example."""
    page = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    first, *_ = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    text: str = yaml.safe_load(first)["spec"]["models"][0]["config"]["overrides"]
    return text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Server]) -> Server:
    """A server of a model that doubles four numbers, with the config.pbtxt that a convert Job writes."""
    repository = tmp_path_factory.mktemp("models")
    version = repository / MODEL / "1"
    version.mkdir(parents=True)
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, ["batch", 4]) for each in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    operators = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=operators, ir_version=8), version / "model.onnx")
    config = ModelConfig(
        instances=1,
        instance_group_kind="KIND_CPU",
        dynamic_batching=True,
        preferred_batch_sizes=(BATCH,),
        max_queue_delay_microseconds=DELAY_SECONDS * 1_000_000,
        cuda_graphs=False,
        warmup=False,
        parameters={},
        overrides=overrides(),
    )
    signature = Signature((Tensor("x", "FP32", (4,)),), (Tensor("y", "FP32", (4,)),), BATCH)
    text = render(signature, config, Execution("onnx", "none", 0, ""), {})
    (version.parent / "config.pbtxt").write_text(text)
    for path in (repository, *repository.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return wait_ready(start(repository, "--model-control-mode=none"))


def send(client: triton.InferenceServerClient, count: int, priority: int = 0) -> "Queue[Answer]":
    """Send requests without waiting for one; their answers, as they come. Priority 0: the model's default."""
    answers: Queue[Answer] = Queue()
    for _ in range(count):
        tensor = triton.InferInput("x", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
        began = time.monotonic()

        def answered(result: Any, error: Any, began: float = began) -> None:
            answers.put((str(error or ""), time.monotonic() - began))

        client.async_infer(MODEL, [tensor], answered, priority=priority)
    return answers


def taken(answers: "Queue[Answer]", count: int) -> list[Answer]:
    return [answers.get(timeout=10 * DELAY_SECONDS) for _ in range(count)]


def test_the_default_level_refuses_what_waits_too_long(server: Server) -> None:
    ((error, seconds),) = taken(send(server.client(), 1), 1)
    assert LATE in error
    assert "UNAVAILABLE" in error
    assert seconds >= TIMEOUT_SECONDS


def test_a_full_queue_refuses_at_once_and_the_first_level_has_its_own(server: Server) -> None:
    """All of them are sent before the first has waited for the timeout.

    The first is always late. Others may be served: Triton takes a batch at the end of the delay, and also when it looks
    at the queue in the last microsecond before the next timeout, because it waits in whole microseconds
    (GetDynamicBatch of its dynamic_batch_scheduler.cc). Both were seen, each once.
    """
    client = server.client()
    usual = send(client, ROOM + 4)
    urgent = send(client, 2, priority=1)
    answers = taken(usual, ROOM + 4)
    full = [seconds for error, seconds in answers if FULL in error]
    late = [seconds for error, seconds in answers if LATE in error]
    served = [seconds for error, seconds in answers if not error]
    assert len(full) == 4, answers
    assert late, answers
    assert len(late) + len(served) == ROOM, answers
    assert all("UNAVAILABLE" in error for error, _ in answers if error)
    assert max(full) < min(late)
    assert min(late) >= TIMEOUT_SECONDS
    assert [error for error, _ in taken(urgent, 2)] == ["", ""]


def test_over_http_a_refused_request_is_503(server: Server) -> None:
    body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}
    url = f"http://127.0.0.1:{server.ports[0]}/v2/models/{MODEL}/infer"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30)
    assert refused.value.code == 503
    assert LATE in refused.value.read().decode()
