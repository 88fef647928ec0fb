"""An ensemble whose first step takes a picture's file: from the reference to the revision, and through the gates."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.converters.conversions import ensemble_conversion, save_doubling
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import Array, Arrays, read_all, read_batches
from triton_converters.contract import formats, layout
from triton_converters.contract.conversion_requests import (
    EnsembleCode,
    Entrypoint,
    ModelCode,
    ReferenceRequest,
    Step,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Tensor
from triton_converters.gates import answers
from triton_converters.gates.outputs import check_outputs
from triton_converters.load import framework
from triton_converters.measuring import load_input
from triton_converters.model_config.data_types import objects, of_wire

SOURCE, KEY = "d" * 64, "0123456789abcdef"
PICTURES = [
    b"\xff\xd8\xff\xe0" + bytes([10 * number + 1] * (number + 2)) + b"\xff\xd9" + bytes(number % 3)
    for number in range(6)
]
"""Files as a JPEG's begin and end, of other lengths, some with zeros at the end."""
DECODE = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "file", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "pixels", "data_type": "TYPE_FP32", "dims": [3]})
        config.add_output({"name": "copy", "data_type": "TYPE_STRING", "dims": [1]})
        return config
    def execute(self, requests):
        responses = []
        for request in requests:
            files = request.inputs()[0].as_numpy()
            assert all(type(each) is bytes and each[:2] == bytes([255, 216]) for each in files[:, 0])
            pixels = np.array([[len(each), each[4], each[-1]] for each in files[:, 0]], np.float32)
            copies = np.array([[each[0][::-1]] for each in files], dtype=object)
            tensors = [pb_utils.Tensor("pixels", pixels), pb_utils.Tensor("copy", copies)]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
"""
DATALOADER = f"""
import numpy
PICTURES = {PICTURES!r}
def get_dataloader_fn(batch_size: int):
    def batches():
        for start in range(0, len(PICTURES), batch_size):
            files = numpy.array(PICTURES[start : start + batch_size], dtype=object)[:, None]
            yield numpy.arange(start, start + len(files)), {{"FILE": files}}, {{}}
    return batches
"""
STEPS = (
    Step(
        "decode",
        {"file": "FILE"},
        {"pixels": "PIXELS", "copy": "COPY"},
        ModelCode(formats.TRITON_PYTHON, Entrypoint("decode/step.py", {}), 4),
    ),
    Step("double", {"x": "PIXELS"}, {"y": "SCORES"}, ModelCode("onnx", Entrypoint("double.onnx", {}), 4)),
)
OUTPUTS = (Tensor("SCORES", "FP32", (3,)), Tensor("COPY", "BYTES", (1,)))
WHOLE = ModelCode(
    "ensemble", Entrypoint("", {}), 4, EnsembleCode((Tensor("FILE", "BYTES", (1,)),), OUTPUTS, STEPS)
)  # fmt: skip


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source, and its reference."""
    directory = layout.source_directory(SOURCE)
    (directory / "decode").mkdir(parents=True)
    (directory / "decode" / "step.py").write_text(DECODE)
    (directory / "data.py").write_text(DATALOADER)
    save_doubling(directory / "double.onnx")
    return directory


@pytest.fixture
def referred(source: Path) -> ReferenceResult:
    """The reference of the ensemble."""
    request = ReferenceRequest(KEY, SOURCE, WHOLE, Entrypoint("data.py", {}), 64, needs_labels=False, batch_sizes=())
    return run_reference(request)


def read(batches: Any, group: str, name: str) -> list[bytes]:
    return [each for batch in batches for each in getattr(batch, group)[name][:, 0].tolist()]


def test_the_reference_holds_the_files(referred: ReferenceResult) -> None:
    assert (referred.samples, referred.signature.outputs) == (6, OUTPUTS)
    batches = list(read_batches(layout.reference_directory(KEY)))
    assert read(batches, "inputs", "FILE") == PICTURES
    assert read(batches, "outputs", "COPY") == [each[::-1] for each in PICTURES]
    scores = [row for batch in batches for row in batch.outputs["SCORES"].tolist()]
    assert scores == [[2 * len(each), 2 * each[4], 2 * each[-1]] for each in PICTURES]
    member = layout.member_key(KEY, "decode")
    assert read(read_batches(layout.reference_directory(member)), "inputs", "file") == PICTURES


def test_a_load_sends_the_files(referred: ReferenceResult, tmp_path: Path) -> None:
    reference = layout.reference_directory(KEY)
    made = load_input.prepare(reference, tmp_path, (), referred.signature)
    assert not made.mixed_file, "a file of another length is an element of the same shape"
    steps = json.loads((reference / "perf.json").read_text())["data"]
    assert [b64decode(step["FILE"]["content"]["b64"])[4:] for step in steps] == PICTURES
    request = load_input.first_request(made.of_shapes[0].document, referred.signature)
    assert request["FILE"].tolist() == [[PICTURES[0]]]


def test_a_server_warms_up_with_a_file(referred: ReferenceResult) -> None:
    run_convert(ensemble_conversion(WHOLE, "labels", KEY, key="f" * 16, source=SOURCE))
    warmup = layout.model_repository("f" * 16) / "decode" / "warmup" / "file"
    assert warmup.read_bytes() == len(PICTURES[0]).to_bytes(4, "little") + PICTURES[0]
    assert of_wire(warmup.read_bytes()).tolist() == PICTURES[:1]


def judged(referred: ReferenceResult, changed: Any = lambda answer: answer) -> None:
    """Raises what the gates raise for an ensemble that answers as its source does, but for ``changed``."""
    model = framework.load(layout.source_directory(SOURCE), WHOLE, "ensemble")

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        return changed({name: array for name, array in model(inputs).items() if name in outputs})  # type: ignore[no-any-return]  # a test's own

    exact = Tolerance(0.0, 0.0)
    found = answers.collect(infer, read_all(layout.reference_directory(KEY)), referred.signature, exact, {})
    check_outputs(found, "fp32", exact)


def test_the_gates_pass_what_is_right_and_refuse_a_byte(referred: ReferenceResult) -> None:
    judged(referred)

    def cut(answer: dict[str, Array]) -> dict[str, Array]:
        copies = [each[0].rstrip(b"\xff") for each in answer["COPY"]]
        return answer | {"COPY": objects(copies, (len(copies), 1))}

    with pytest.raises(StageError) as error:
        judged(referred, cut)
    assert error.value.reason is Reason.OUTPUTS_DIFFER
    assert "COPY" in error.value.message
