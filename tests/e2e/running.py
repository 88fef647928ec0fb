"""`kubectl triton run` with an ONNX file, as somebody's first command."""

import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy
from onnx import TensorProto, helper, numpy_helper

from tests.e2e import plugin
from tests.e2e.applied import PATIENCE_SECONDS
from tests.e2e.kubectl import Object
from tests.e2e.suite import Suite

NAME = "ran"
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], sys.argv[2].encode(), timeout=30).read().decode())
"""


@dataclass(frozen=True)
class Ran:
    """What the command left."""

    command: "subprocess.CompletedProcess[str]"
    again: "subprocess.CompletedProcess[str]"
    """The same command once more."""
    yaml: str
    """The file that it wrote."""
    object: Object
    answer: str
    """What the server answered to the request that the command printed."""


def run(suite: Suite) -> Ran:
    """Run the command, run it again, and send the request that it printed."""
    with tempfile.TemporaryDirectory() as folder:
        model, file = Path(folder, "scores.onnx"), Path(folder, f"{NAME}.yaml")
        model.write_bytes(graph())
        arguments = (str(model), "--name", NAME)
        command = plugin.run(suite.busy, "run", *arguments, timeout=PATIENCE_SECONDS)
        assert command.returncode == 0, f"{command.stdout}\n{command.stderr}"
        again = plugin.run(suite.busy, "run", *arguments)
        written = file.read_text()
    curl = shlex.split(command.stdout.rstrip().splitlines()[-1])
    (url,) = (word.replace("localhost", NAME) for word in curl if word.startswith("http"))
    answer = suite.workbench.run("python3", "-c", ASK, url, curl[-1])
    return Ran(command, again, written, suite.busy.get("td", NAME), answer)


def graph() -> bytes:
    """A linear layer."""
    weights = numpy.random.default_rng(0).standard_normal((4, 2)).astype(numpy.float32)
    made = helper.make_graph(
        [helper.make_node("MatMul", ["features", "weights"], ["scores"])],
        "scores",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
