"""A real tritonserver of the CPU image with a small model, and clients that ask it without pause."""

import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from hack.imagebuild.pod import IN_IMAGE, ROOT, free_ports
from tests.apiserver.operator_process import eventually

CONFIG = """backend: "onnxruntime"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [4] }
output { name: "y" data_type: TYPE_FP32 dims: [4] }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }
"""
CLIENTS = 2


def write_model(repository: Path, name: str) -> None:
    """A model that doubles four numbers."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, ["batch", 4]) for each in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), version / "model.onnx"
    )
    (version.parent / "config.pbtxt").write_text(CONFIG)
    for path in (repository, *repository.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@contextmanager
def served(folder: Path, model: str) -> Iterator[int]:
    """A server under load; its port of metrics. It reports summaries of latencies, as the chart has it by default."""
    repository = folder / "models"
    write_model(repository, model)
    http, grpc, metrics = free_ports()
    argv = [
        *IN_IMAGE, "tritonserver-cpu", "--user", "1000:1000", "--mount", f"{repository}:/models:ro", "--",
        "tritonserver", "--model-repository=/models", "--http-port", str(http), "--grpc-port", str(grpc),
        "--metrics-port", str(metrics), "--metrics-interval-ms=500", "--metrics-config", "summary_latencies=true",
    ]  # fmt: skip
    log, stop = folder / "tritonserver.log", threading.Event()
    with log.open("w") as file:
        server = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file)
    clients = [threading.Thread(target=_ask, args=(http, model, stop), daemon=True) for _ in range(CLIENTS)]
    try:

        def ready() -> bool:
            assert server.poll() is None, log.read_text()
            return _post(http, model, [0.0] * 4) == 200

        eventually(ready, within=300)
        for client in clients:
            client.start()
        yield metrics
    finally:
        stop.set()
        if server.poll() is None:
            server.terminate()
        server.wait(90)


def _ask(port: int, model: str, stop: threading.Event) -> None:
    """Send requests, every twentieth of which has a wrong shape."""
    number = 0
    while not stop.wait(0.01):
        number += 1
        _post(port, model, [0.5] * (3 if number % 20 == 0 else 4))


def _post(port: int, model: str, numbers: list[float]) -> int:
    """The code of an answer; 0 if there is none."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, len(numbers)], "data": numbers}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
