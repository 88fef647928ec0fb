"""A model's folder of a Triton repository, with things in it that nobody may serve; and one of a Python backend."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e import plugin
from tests.e2e.applied import PATIENCE_SECONDS
from tests.e2e.kubectl import KubectlError, Object
from tests.e2e.last_words import eventually
from tests.e2e.running import graph
from tests.e2e.state import State
from tests.e2e.suite import Suite
from triton_converters.contract import layout

NAME = "served-already"
REFUSED = "python-backend"
CLAIM = "served-already"
CONFIG = """
platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "features" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "scores" data_type: TYPE_FP32 dims: [ 2 ] }
instance_group { count: 2 }
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 250
  default_queue_policy { max_queue_size: 64 }
}
"""
LIBRARY = "libtriton_onnxruntime.so"
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())
"""


@dataclass(frozen=True)
class ServedAlready:
    """What became of both objects."""

    ready: State
    config: Object
    """The configuration that the server tells."""
    files: list[str]
    """The files that the server is given."""
    refused: State


def run(suite: Suite) -> ServedAlready:
    """Push a repository of two models, apply an object of each, and ask the server of the first for its settings."""
    with TemporaryDirectory() as folder:
        model = Path(folder, "ocr")
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG)
        (model / "1/model.onnx").write_bytes(graph())
        for place in (model, model / "1"):
            (place / LIBRARY).write_text("planted")
        code = Path(folder, "code")
        (code / "1").mkdir(parents=True)
        (code / "config.pbtxt").write_text('backend: "python"')
        (code / "1/model.py").write_text("class TritonPythonModel: ...")
        pushed = plugin.run(
            suite.busy, "push", folder, f"pvc://{CLAIM}/models", "--size", "1Gi", timeout=PATIENCE_SECONDS
        )
        assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
    first, second = suite.new(NAME), suite.new(REFUSED)
    first.base, second.base = an_object("ocr"), an_object("code")
    generation = second.apply()
    ready = first.wait_ready(first.apply()).state
    refused = second.wait(
        "the refusal", lambda state: state.says("SourceResolved", "ModelConfigRefused"), generation=generation
    ).state
    # The node's proxy may learn of the new pod a moment after the object is Ready.
    config = eventually("the server's answer", lambda: _config(suite))
    server = f"deployment/{first.children('deployments')[0]['metadata']['name']}"
    models = layout.model_repository(ready.status["serving"]["revision"])
    files = suite.busy.execute(server, "find", str(models), "-type", "f", "-printf", "%P\\n").split()
    return ServedAlready(ready, config, files, refused)


def _config(suite: Suite) -> Object | None:
    """The configuration that the server tells; None if the connection is refused."""
    try:
        config: Object = json.loads(
            suite.workbench.run("python3", "-c", ASK, f"http://{NAME}:8000/v2/models/reader/config")
        )
    except KubectlError as error:
        if "Connection refused" not in str(error):
            raise
        return None
    return config


def an_object(folder: str) -> Object:
    """The object of a model's folder, without its name."""
    spec = {"source": {"uri": f"pvc://{CLAIM}/models"}, "models": [{"name": "reader", "path": folder}]}
    return {"apiVersion": "triton-operator.dev/v1alpha1", "kind": "TritonDeployment", "spec": spec}
