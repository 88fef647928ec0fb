"""One object whose source becomes slower, then as it was, then slower again where that is not let through."""

import base64
from dataclasses import dataclass
from itertools import pairwise

import numpy
from onnx import TensorProto, helper, numpy_helper

from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "regressing"
FILE = "chain.onnx"
WIDTH, LAYERS = 128, 20
FAST, SLOW = 1, 5000
"""Copies of a sample that the graph works on. With 5,000 a request takes some 25 ms of one core, else much less than
1 ms, and other objects' Jobs make a server slower by a few times only."""
REPORTED = {"performance": {"regression": {"maxPercent": 50}}}
BLOCKED = {"performance": {"regression": {"maxPercent": 50, "block": True}}}


@dataclass(frozen=True)
class Regressed:
    """The object after each version of its source."""

    first: State
    reported: State
    """The slower source serves, as the spec only asks for a report."""
    recovered: State
    """The first source serves again."""
    blocked: State
    """The slower source may not replace it."""
    events: tuple[Object, ...]
    """All events of the object."""


def run(suite: Suite) -> Regressed:
    """Apply four specs, each with other files in the ConfigMap, and wait for what becomes of each."""
    applied = suite.new(NAME)
    applied.base = an_object()

    def served(version: str, copies: int, spec: Object) -> State:
        generation = applied.apply({**publish(suite, version, copies), **spec})
        return applied.wait(f"version {version} to serve", is_served, generation=generation).state

    first = served("1", FAST, REPORTED)
    reported = served("2", SLOW, REPORTED)
    recovered = served("3", FAST, BLOCKED)
    blocked = applied.wait(
        "version 4 to be held back",
        lambda state: state.says("UpToDate", "PerformanceRegressed"),
        generation=applied.apply({**publish(suite, "4", SLOW), **BLOCKED}),
    ).state
    listed = suite.busy.items(
        "events", f"--field-selector=involvedObject.kind=TritonDeployment,involvedObject.name={NAME}"
    )
    return Regressed(first, reported, recovered, blocked, tuple(listed))


def is_served(state: State) -> bool:
    """Whether what the spec asks for serves. Ready alone stays True while a version that moved is worked on."""
    return state.holds("Ready") and state.holds("UpToDate")


def an_object() -> Object:
    """The object, without its name and the source's version."""
    spec = {
        "models": [{"name": "chain", "path": FILE}],
        "performance": {
            "offline": {"batchSizes": [1]},
            "online": {"concurrency": {"start": 1, "end": 1}},
            "measurement": {"requestCount": 10, "stabilityPercent": 900},
        },
    }
    return {"apiVersion": "triton-operator.dev/v1alpha1", "kind": "TritonDeployment", "spec": spec}


def publish(suite: Suite, version: str, copies: int) -> Object:
    """Write the graph into the ConfigMap; gives the source by which the operator reads it again."""
    encoded = base64.b64encode(chain(copies)).decode()
    suite.busy.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "binaryData": {FILE: encoded}}
    )
    return {"source": {"uri": f"configmap://{NAME}", "version": version}}


def chain(copies: int) -> bytes:
    """Return a graph that multiplies copies of its input by an orthogonal matrix again and again, and takes their mean.

    No value vanishes or grows, and the answers are those of one copy.
    """
    matrix, _ = numpy.linalg.qr(numpy.random.default_rng(0).standard_normal((WIDTH, WIDTH)))
    names = ["rows", *(f"h{layer}" for layer in range(LAYERS))]
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["row"]),
        helper.make_node("Expand", ["row", "copies"], ["rows"]),
        *(helper.make_node("MatMul", [before, "matrix"], [after]) for before, after in pairwise(names)),
        helper.make_node("ReduceMean", [names[-1]], ["y"], axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", WIDTH])],
        [
            numpy_helper.from_array(matrix.astype(numpy.float32), "matrix"),
            numpy_helper.from_array(numpy.array([1], numpy.int64), "axis"),
            numpy_helper.from_array(numpy.array([1, copies, 1], numpy.int64), "copies"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
