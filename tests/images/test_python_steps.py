"""Python steps on the real server: a wrong answer is an error of its own request, and a process that ends ends all."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from PIL import Image
from tritonclient.utils import InferenceServerException

from tests.images.python_models import STEPS, readable, tensors, write_model, write_step
from tests.images.server import Server, wait_ready
from tests.python_backend import questions
from triton_converters.claim_store import python_step
from triton_operator.resources.server import COMPLETE

pytestmark = pytest.mark.images

IO = (*tensors("input", ("x", "FP32", "2")), *tensors("output", ("y", "FP32", "2"), ("t", "STRING", "1")))
BATCHING = "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 300000 }"
WRONG = {
    1: "step faulty: step.py: execute returned NoneType in place of a response",
    2: "step faulty: step.py: output t has the shape [2, 1], but the request has 1 rows",
    3: "step faulty: step.py: the response lacks output t; it has: y",
    4: "step faulty: step.py: output y has the type float64, but the configuration says TYPE_FP32",
    5: "step faulty: step.py: output y has the dimensions [3] after the batch, but the configuration says [2];"
    " declare -1 where it varies",
    6: "step faulty: step.py:34: ValueError: invalid literal for int() with base 10: 'picture'",
    7: "step faulty: step.py:35: the code called sys.exit(3)",
    8: "step faulty: step.py: execute returned ndarray in place of a response",
    9: "step faulty: step.py: output t holds None: BYTES are bytes or str",
    10: "step faulty: step.py: output y has the shape [], but the request has 1 rows",
    11: "step faulty: step.py: the response has two outputs of one name",
    12: "the user's own words",
}
"""What the client of a request is told, by the request's first number."""
BROKEN = {
    "generator": (
        "class TritonPythonModel:\n    def execute(self, requests):\n        yield 1",
        "execute is a generator",
    ),
    "exits": ("import sys\nsys.exit(4)", "step.py:2: the code called sys.exit(4)"),
    "syntax": ("x = (", "step.py:1: SyntaxError"),
    "missing": ("import torch", "step.py:1: ModuleNotFoundError: No module named 'torch'"),
    "package": (
        "import lame",
        "step.py:1: ImportError: no symbol; the package lame of the model's requirements does not",
    ),
    "classless": ("x = 1", "defines no class TritonPythonModel with a method execute"),
    "initialize": (
        "class TritonPythonModel:\n    def initialize(self, args): 1 / 0\n    def execute(self, requests): pass",
        "step.py:2: ZeroDivisionError: division by zero",
    ),
}
RETURNED = {
    "nothing": ("return None", "execute returned NoneType, not a list of responses"),
    "few": ("return []", "execute returned 0 responses for 1 requests"),
    "generator": ("return (each for each in requests)", "execute returned generator, not a list of responses"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("steps")
    write_step(root / "faulty", {"step.py": (STEPS / "faulty.py").read_text()}, *IO, BATCHING)
    write_step(root / "ending", {"step.py": (STEPS / "faulty.py").read_text()}, *IO)
    neighbours = {"deep/2/neighbour.py": 'WORD = "near"', "deep/2/words.txt": "some wörds"}
    told = {"deep/2/step.py": (STEPS / "telling.py").read_text(), **neighbours}
    version = write_step(root / "telling", told, *IO, file="deep/2/step.py")
    (version / "packages").mkdir()
    (version / "packages" / "in_packages.py").write_text('WORD = "from packages"')
    dims = (*tensors("input", ("x", "FP32", "2")), *tensors("output", ("y", "FP32", "-1")))
    version = write_step(root / "varying", {"step.py": (STEPS / "varying.py").read_text()}, *dims)
    python_step.write_settings(version, "step.py", 3, {"y": (2,)})
    for name, (text, _) in RETURNED.items():
        body = f"class TritonPythonModel:\n    def execute(self, requests):\n        {text}"
        write_step(root / f"returns_{name}", {"step.py": body}, *IO)
    asked = (
        *tensors("input", ("x", "FP32", "-1, 2"), ("words", "STRING", "-1")),
        *tensors("output", ("y", "STRING", "1"), ("z", "FP32", "1")),
    )
    version = write_model(root / "questions", *asked, batch=0)
    for each in ("questions", "model"):
        (version / f"{each}.py").write_text((Path(questions.__file__).parent / f"{each}.py").read_text())
    return readable(root)


@pytest.fixture(scope="module")
def server(repository: Path, start: Callable[..., Server]) -> Server:
    return wait_ready(start(repository, "--model-control-mode=none", COMPLETE))


def given(first: int) -> list[triton.InferInput]:
    rows = np.array([[first, 1]], np.float32)
    x = triton.InferInput("x", rows.shape, "FP32")
    x.set_data_from_numpy(rows)
    return [x]


def answered(server: Server, model: str, first: int, timeout: float = 60) -> str:
    """The error, or nothing."""
    try:
        result = server.client().infer(model, given(first), client_timeout=timeout)
    except InferenceServerException as error:
        return str(error.message())
    np.testing.assert_array_equal(result.as_numpy("y"), [[first, 1]])
    return ""


def test_the_real_backend_answers_every_question_as_recorded(server: Server) -> None:
    request = questions.REQUEST
    x = triton.InferInput("x", [3, 2], "FP32")
    x.set_data_from_numpy(np.array(request["x"], np.float32))
    words = triton.InferInput("words", [3], "BYTES")
    words.set_data_from_numpy(np.array([each.encode() for each in request["words"]], dtype=object))
    outputs = [triton.InferRequestedOutput(name) for name in ("y", "z")]
    answer = server.client().infer(
        "questions", [x, words], request_id=request["id"], parameters=request["parameters"], outputs=outputs
    )
    recorded = json.loads((Path(questions.__file__).parent / "answers.json").read_text())
    assert json.loads(answer.as_numpy("y")[0]) == recorded


def test_each_request_that_is_answered_wrongly_fails_by_itself(server: Server) -> None:
    """All of them are in one batch, with right ones among them."""
    order = [first for number in WRONG for first in (0, number)]
    with ThreadPoolExecutor(len(order)) as pool:
        found = list(pool.map(lambda first: answered(server, "faulty", first), order))
    assert dict(zip(order[1::2], found[1::2], strict=True)) == WRONG
    assert set(found[::2]) == {""}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_no_list_of_responses_is_told(server: Server, name: str) -> None:
    assert answered(server, f"returns_{name}", 0) == f"step returns_{name}: step.py: {RETURNED[name][1]}"


def test_a_step_sees_its_packages_and_files_and_no_package_of_the_image(server: Server) -> None:
    result = server.client().infer("telling", given(0), client_timeout=60)
    told: dict[str, Any] = json.loads(result.as_numpy("t")[0, 0])
    path = told.pop("path")
    assert told == {
        "packages": "from packages",
        "neighbour": "near",
        "file": "some wörds",
        "torch": False,
        "threads": "3",
        "folder": "/models/telling/1/source/deep",
        "directory": "/models/telling/1/source/deep/2",
        "numpy": [0.0, 0.0],
        "metadata": True,
    }
    # What it printed as it started, while it still runs.
    assert "some wörds" in server.log().splitlines()
    assert path[0] == "/models/telling/1/source/deep/2"
    assert path[-1] == "/models/telling/1/packages"
    assert "/models/telling/1/source" not in path
    assert not [each for each in path if each.endswith(("dist-packages", "site-packages"))]


def test_a_tensor_of_the_batch_alone_gets_a_dimension_as_declared(server: Server) -> None:
    answer = server.client().infer("faulty", given(17), client_timeout=60)
    assert answer.as_numpy("t").tolist() == [[b"t"]]
    np.testing.assert_array_equal(answer.as_numpy("y"), [[17, 1]])


def test_a_step_answers_other_sizes_and_is_told_what_its_author_declared(server: Server) -> None:
    answer = server.client().infer("varying", given(0), client_timeout=60)
    assert answer.as_numpy("y").tolist() == [[2, 2, 2]]
    (y,) = server.client().get_model_metadata("varying").outputs
    assert (y.name, list(y.shape)) == ("y", [-1, -1])


def test_more_memory_than_there_is_fails_the_request_alone(server: Server) -> None:
    assert "MemoryError: Unable to allocate" in answered(server, "ending", 13)
    assert answered(server, "ending", 0) == ""


@pytest.mark.parametrize("end", [14, 15], ids=["os._exit", "SIGKILL"])
def test_a_process_that_ends_ends_the_server(repository: Path, start: Callable[..., Server], end: int) -> None:
    server = wait_ready(start(repository, "--model-control-mode=explicit", "--load-model=ending", COMPLETE))
    assert answered(server, "ending", end) != ""
    assert server.process.wait(120) != 0
    assert "the process of model instance 'ending_0_0' died; the server ends" in server.log()


def test_a_step_that_hangs_holds_its_own_model_alone(repository: Path, start: Callable[..., Server]) -> None:
    models = ("--load-model=ending", "--load-model=faulty")
    server = wait_ready(start(repository, "--model-control-mode=explicit", *models, COMPLETE))
    assert answered(server, "ending", 16, timeout=2) == "Deadline Exceeded"
    with ThreadPoolExecutor(1) as threads:
        threads.submit(answered, server, "ending", 16, timeout=10)
        assert server.reaches("nv_inference_pending_request_count", "ending", 1), "which TritonRequestsHang counts"
        assert answered(server, "faulty", 0) == ""
    assert server.is_ready()


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_step_is_refused_in_words(broken: Server, name: str) -> None:
    with pytest.raises(InferenceServerException) as error:
        broken.client().load_model(name)
    assert f"step {name}: step.py" in str(error.value)
    assert BROKEN[name][1] in str(error.value)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Server]) -> Server:
    root = tmp_path_factory.mktemp("broken")
    for name, (text, _) in BROKEN.items():
        version = write_step(root / name, {"step.py": text}, *IO)
        (version / "packages").mkdir()
        (version / "packages" / "lame.py").write_text("raise ImportError('no symbol')")
    return wait_ready(start(readable(root), "--model-control-mode=explicit", COMPLETE))


# JPEG bytes to a label.


def jpeg(colour: tuple[int, int, int], size: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(file, "JPEG")
    return file.getvalue()


PICTURES = [jpeg((220, 20, 20), 31), b"no picture", jpeg((10, 200, 30), 64), jpeg((0, 0, 250), 500)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Server]) -> Server:
    """A server with the ensemble of a decoder, a network and a step for the label."""
    root = tmp_path_factory.mktemp("pictures")
    decoder = (*tensors("input", ("file", "STRING", "1")), *tensors("output", ("picture", "FP32", "3, 8, 8")), BATCHING)
    # By the test's own pip: a container of this machine need not reach an index. The e2e suite has the real Job.
    packages = tmp_path_factory.mktemp("packages")
    wheels = ("--target", str(packages), "--python-version", "3.13", "--only-binary", ":all:", "--no-deps")
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels, "pillow==13.0.0"]
    subprocess.run(argv, check=True)
    write_step(root / "decode", {"step.py": (STEPS / "decode.py").read_text()}, *decoder, packages=packages)
    labels = *tensors("input", ("logits", "FP32", "3")), *tensors("output", ("label", "STRING", "1"))
    write_step(
        root / "label",
        {"step.py": (STEPS / "label.py").read_text()},
        *labels,
        *tensors("output", ("probability", "FP32", "1")),
    )
    network(root / "network")
    folder = root / "classify"
    (folder / "1").mkdir(parents=True)
    steps = {
        "decode": ({"file": "file"}, {"picture": "picture"}),
        "network": ({"x": "picture"}, {"y": "logits"}),
        "label": ({"logits": "logits"}, {"label": "label", "probability": "probability"}),
    }
    lines = ['platform: "ensemble"', "max_batch_size: 8", *tensors("input", ("file", "STRING", "1"))]
    lines += tensors("output", ("label", "STRING", "1"), ("probability", "FP32", "1"))
    scheduled = []
    for name, sides in steps.items():
        maps = " ".join(
            f'{kind}_map {{ key: "{key}" value: "{value}" }}'
            for kind, side in zip(("input", "output"), sides, strict=True)
            for key, value in side.items()
        )
        scheduled.append(f'step {{ model_name: "{name}" model_version: -1 {maps} }}')
    lines.append(f"ensemble_scheduling {{ {' '.join(scheduled)} }}")
    (folder / "config.pbtxt").write_text("\n".join([*lines, ""]))
    return wait_ready(start(readable(root), "--model-control-mode=none", COMPLETE))


def network(folder: Path) -> None:
    """The mean of each colour, which stands for a classifier."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (folder / "1").mkdir(parents=True)
    onnx.save(model, folder / "1" / "model.onnx")
    group = "instance_group { count: 1 kind: KIND_CPU }"
    lines = ['backend: "onnxruntime"', "max_batch_size: 8", group, *tensors("input", ("x", "FP32", "3, 8, 8"))]
    (folder / "config.pbtxt").write_text("\n".join([*lines, *tensors("output", ("y", "FP32", "3")), ""]))


def test_pictures_become_labels_and_what_is_no_picture_fails_its_own_request(pictures: Server) -> None:

    def label(data: bytes) -> str:
        file = triton.InferInput("file", [1, 1], "BYTES")
        file.set_data_from_numpy(np.array([[data]], dtype=object))
        try:
            result = pictures.client().infer("classify", [file], client_timeout=60)
        except InferenceServerException as error:
            return str(error.message())
        return str(result.as_numpy("label")[0, 0].decode())

    with ThreadPoolExecutor(len(PICTURES)) as pool:
        found = list(pool.map(label, PICTURES))
    assert [found[0], *found[2:]] == ["red", "green", "blue"]
    assert "step decode: step.py:" in found[1]
    assert "UnidentifiedImageError" in found[1]
