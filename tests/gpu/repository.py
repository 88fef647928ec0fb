"""`python3 -m tests.gpu.repository FOLDER`: a model repository with one graph, as ONNX and as an engine to be built.

This runs where Triton's message of config.pbtxt is, as in the Job that publishes. `test_engine_to_serve.py` builds the
engine in the converter image for GPUs, and `served.py` serves both models in the server's image.
"""

import json
import shutil
import sys
from pathlib import Path

import onnx
import onnxruntime

from tests.converters.onnx_models import MODELS, inputs
from tests.gpu.model import MODEL, SIGNATURE
from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.formats import FORMATS
from triton_converters.model_config.model import Execution, render

FORMS = {"graph": "onnx", "engine": "trt"}
CONFIG = ModelConfig(1, "KIND_GPU", True, (), 0, False, False, {})


def write(folder: Path) -> None:
    """Write the repository, a request in Triton's JSON, and what the CPU answers."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, form in FORMS.items():
        (folder / "models" / name / "1").mkdir(parents=True)
        text = render(SIGNATURE, CONFIG, Execution(form, "none", 0, ""), {})
        (folder / "models" / name / "config.pbtxt").write_text(text)
    path = folder / "models/graph/1" / FORMATS["onnx"].file
    onnx.save(MODELS[MODEL](), str(path))
    feed = inputs(MODEL)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (answer,) = session.run(["y"], feed)
    given = {"name": "x", "datatype": "FP32", "shape": feed["x"].shape, "data": feed["x"].ravel().tolist()}
    (folder / "request.json").write_text(json.dumps({"inputs": [given]}))
    (folder / "answer.json").write_text(json.dumps(answer.ravel().tolist()))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
