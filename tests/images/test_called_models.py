"""Python steps on the real server that ask other models: as the reference is answered, and nobody waits for ever."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from tests.images.python_models import STEPS, readable, tensors, write_model, write_step
from tests.images.server import Server, wait_ready
from tests.python_backend import asking
from triton_operator.resources.server import COMPLETE

pytestmark = pytest.mark.images

HERE = Path(asking.__file__).parent
ECHO = """
import triton_python_backend_utils as pb
class TritonPythonModel:
    def execute(self, requests):
        words = [each.inputs()[0].as_numpy() for each in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in words]
"""
BATCHING = "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 300000 }"
ROWS = (*tensors("input", ("x", "FP32", "3")), *tensors("output", ("y", "FP32", "3")))


def times(folder: Path, factor: float) -> None:
    """An ONNX model of one instance: x [batch, 3] to y."""
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy"]
    constant = numpy_helper.from_array(np.array(factor, np.float32), "factor")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "g", sides[:1], sides[1:], [constant])
    (folder / "1").mkdir(parents=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "1" / "model.onnx")
    group = "instance_group { count: 1 kind: KIND_CPU }"
    (folder / "config.pbtxt").write_text("\n".join(['backend: "onnxruntime"', "max_batch_size: 4", group, *ROWS, ""]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Server]) -> Server:
    root = tmp_path_factory.mktemp("called")
    times(root / "double", 2)
    times(root / "triple", 3)
    sides = (*tensors("input", ("x", "STRING", "1")), *tensors("output", ("y", "STRING", "1")))
    (write_model(root / "words", *sides, batch=4) / "model.py").write_text(ECHO)
    files = {name: (HERE / name).read_text() for name in ("asking.py", "questions.py", "asking_step.py")}
    asked = (*tensors("input", ("x", "FP32", "1")), *tensors("output", ("t", "STRING", "1")))
    write_step(root / "asking", files, *asked, file="asking_step.py")
    cascade = {"step.py": (STEPS / "cascade.py").read_text()}
    write_step(root / "cascade", cascade, *ROWS, BATCHING)
    return wait_ready(start(readable(root), "--model-control-mode=none", COMPLETE))


def test_the_real_backend_answers_what_is_asked_of_other_models_as_recorded(server: Server) -> None:
    x = triton.InferInput("x", [1, 1], "FP32")
    x.set_data_from_numpy(np.zeros((1, 1), np.float32))
    answer = server.client().infer("asking", [x], client_timeout=60)
    assert json.loads(answer.as_numpy("t")[0, 0]) == json.loads((HERE / "asked.json").read_text())


def answered(server: Server, first: float) -> list[list[float]] | str:
    rows = np.array([[first, 1, 2]], np.float32)
    x = triton.InferInput("x", rows.shape, "FP32")
    x.set_data_from_numpy(rows)
    try:
        found: list[list[float]] = server.client().infer("cascade", [x], client_timeout=60).as_numpy("y").tolist()
    except InferenceServerException as error:
        return str(error.message())
    return found


def test_requests_at_once_wait_for_one_instance_and_a_wrong_one_fails_alone(server: Server) -> None:
    """The step gets them in one batch. It fails, and is asked for each alone, so it asks the models again."""
    order = [1, 7, 99, 2, 8, 98, 3, 9]
    with ThreadPoolExecutor(len(order)) as pool:
        found = dict(zip(order, pool.map(lambda first: answered(server, first), order), strict=True))
    wrong = {first: found.pop(first) for first in (99, 98)}
    assert found == {
        first: [[factor * each for each in (first, 1, 2)]]
        for factor, firsts in ((2.0, (1, 2, 3)), (3.0, (7, 8, 9)))
        for first in firsts
    }
    assert all(str(words).startswith("step cascade: step.py:") for words in wrong.values()), wrong
    assert "absent" in wrong[98]
