"""The smallest object: a file and its name, as a stranger would write it."""

import base64

import numpy
from onnx import TensorProto, helper, numpy_helper

from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "smallest"
FILE = "detector.onnx"


def run(suite: Suite) -> State:
    """Put the file into a ConfigMap, apply the object and wait for Ready."""
    suite.busy.apply(files())
    applied = suite.new(NAME)
    applied.base = smallest()
    return applied.wait_ready(applied.apply()).state


def files() -> Object:
    """Return the ConfigMap with the file."""
    encoded = base64.b64encode(detector()).decode()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "binaryData": {FILE: encoded}}


def smallest() -> Object:
    """The object, without its name."""
    spec = {"source": {"uri": f"configmap://{NAME}"}, "models": [{"name": "detector", "path": FILE}]}
    return {"apiVersion": "triton-operator.dev/v1alpha1", "kind": "TritonDeployment", "spec": spec}


def detector() -> bytes:
    """Return a graph whose outputs have sizes of their own, which follow those of the picture."""
    weights = numpy.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(numpy.float32)
    nodes = [
        helper.make_node("Conv", ["images", "weights"], ["features"], strides=[2, 2]),
        helper.make_node("Sigmoid", ["features"], ["scores"]),
        helper.make_node("Reshape", ["scores", "shape"], ["output0"]),
    ]
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", 8, "anchors"])],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(numpy.array([0, 8, -1], numpy.int64), "shape"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
