"""`kubectl triton run` with an ONNX file, as somebody's first command, and `eject` as the last one."""

import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy
from onnx import TensorProto, helper, numpy_helper

from tests.e2e import plugin
from tests.e2e.applied import PATIENCE_SECONDS
from tests.e2e.kubectl import KubectlError, Object
from tests.e2e.last_words import eventually
from tests.e2e.leaving import leave
from tests.e2e.suite import Suite

NAME = "ran"
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], sys.argv[2].encode(), timeout=float(sys.argv[3])).read().decode())
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
    answer_without: str
    """What it answered to the same request once the object was gone."""


def run(suite: Suite) -> Ran:
    """Run the command, run it again, send the request that it printed, and again when the object is gone."""
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
    answer, found = ask(suite, url, curl[-1], timeout=30), suite.busy.get("td", NAME)
    leave(suite, NAME)
    without = eventually("an answer of the copy", lambda: answered(suite, url, curl[-1]))
    return Ran(command, again, written, found, answer, without)


def ask(suite: Suite, url: str, body: str, timeout: float) -> str:
    """Send a request from a pod; gives the answer. ``timeout``: in seconds."""
    return suite.workbench.run("python3", "-c", ASK, url, body, str(timeout))


def answered(suite: Suite, url: str, body: str) -> str | None:
    """The same; None if no server is reached. The cluster's DNS keeps the old Service's address for some seconds."""
    try:
        return ask(suite, url, body, timeout=5)
    except KubectlError as error:
        if "urlopen error" not in str(error):
            raise
        return None


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
