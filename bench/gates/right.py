"""Right variants of a model, by rule: other programs, sizes and orders, whose results only round differently."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import onnx.reference
from onnx import helper

from bench.gates.packages import onnxsim, openvino
from bench.gates.surgery import Surgery
from triton_converters.claim_store.dump import Array, Arrays

SEED = 5
PADDED = 3
"""Samples that other clients put into the same batch."""
Run = Callable[[Arrays], dict[str, Array]]
Open = Callable[[Any, tuple[str, ...]], Run]
"""Opens a graph once, to be asked for outputs of these names."""


def onnx_runtime(threads: int = 1, level: str = "ORT_ENABLE_ALL") -> Open:
    """Return how ONNX Runtime opens a graph on the CPU."""

    def open_session(model: Any, outputs: tuple[str, ...]) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]

        def run(inputs: Arrays) -> dict[str, Array]:
            found = session.run(list(outputs), {name: inputs[name] for name in names})
            return dict(zip(outputs, found, strict=True))

        return run

    return open_session


def open_vino(model: Any, outputs: tuple[str, ...]) -> Run:
    """Another runtime, with other kernels. Raises what OpenVINO raises where it lacks an operator."""
    vino = openvino()
    core = vino.Core()
    read = core.read_model(model.SerializeToString())
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    places = {name: compiled.output(name) for name in outputs}
    inputs_known = {name: port for port in compiled.inputs for name in port.get_names()}

    def run(inputs: Arrays) -> dict[str, Array]:
        given = {port: numpy.ascontiguousarray(inputs[name]) for name, port in inputs_known.items() if name in inputs}
        found = compiled(given)
        return {name: numpy.array(found[place]) for name, place in places.items()}

    return run


def another_runtime(model: Any, outputs: tuple[str, ...]) -> Run:
    """OpenVINO or, for operators that it lacks, ONNX's own evaluator. Raises what that raises."""
    try:
        return open_vino(model, outputs)
    except Exception:
        evaluator = onnx.reference.ReferenceEvaluator(model)
        return lambda inputs: dict(zip(outputs, evaluator.run(list(outputs), dict(inputs)), strict=True))


def in_a_larger_batch(opened: Open) -> Open:
    """Return an engine in which every request shares a batch with samples of others."""

    def open_batched(model: Any, outputs: tuple[str, ...]) -> Run:
        run = opened(model, outputs)

        def padded(inputs: Arrays) -> dict[str, Array]:
            rows = len(next(iter(inputs.values())))
            both = {name: numpy.concatenate([array[:1]] * PADDED + [array]) for name, array in inputs.items()}
            return {name: array[PADDED:] for name, array in run(both).items() if len(array) == rows + PADDED}

        return padded

    return open_batched


def sums_reordered(model: Any) -> Any | None:
    """Return the graph with all sums over weights in another order; None: it has none."""
    variant, random, changed = Surgery(model), numpy.random.default_rng(SEED), 0
    weights = variant.weights()
    for node in list(variant.graph.node):
        axis = _summed_axis(node, weights)
        if axis is None or sum(node.input[1] in each.input for each in variant.graph.node) > 1:
            continue
        weight_axis, data_axis = axis
        values = weights[node.input[1]]
        order = random.permutation(values.shape[weight_axis])
        variant.set_weight(node.input[1], numpy.take(values, order, weight_axis))
        moved, indices = variant.name(), variant.weight(order)
        place = next(index for index, each in enumerate(variant.graph.node) if each.output == node.output)
        given, variant.graph.node[place].input[0] = node.input[0], moved
        variant.insert(place, helper.make_node("Gather", [given, indices], [moved], axis=data_axis))
        changed += 1
    return variant.model if changed else None


def _summed_axis(node: Any, weights: dict[str, Array]) -> tuple[int, int] | None:
    """Return the axes of the weight and of the data over which a node sums; None: it is of no kind that is known."""
    if node.domain or len(node.input) < 2 or node.input[1] not in weights or node.input[0] in weights:
        return None
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if node.op_type == "MatMul" and weights[node.input[1]].ndim == 2:
        return 0, -1
    if node.op_type == "Gemm" and not attributes.get("transA", 0):
        return (1 if attributes.get("transB", 0) else 0), 1
    if node.op_type == "Conv" and attributes.get("group", 1) == 1:
        return 1, 1
    return None


def simplified(model: Any) -> Any:
    """Return the graph as onnxsim rewrites it."""
    found, _ = onnxsim().simplify(model)
    return found


def unchanged(model: Any) -> Any:
    """Return the graph itself."""
    return model


@dataclass(frozen=True)
class Right:
    """A right variant: another graph, another way to run it, or both."""

    graph: Callable[[Any], Any | None]
    engine: Open
    batched: bool = False
    """Only for a model with a batch dimension."""


PLAIN = onnx_runtime()
RIGHT: dict[str, Right] = {
    "as it is": Right(unchanged, PLAIN),
    "another runtime": Right(unchanged, another_runtime),
    "another batch size": Right(unchanged, in_a_larger_batch(PLAIN), batched=True),
    "sums in another order": Right(sums_reordered, PLAIN),
    "simplified graph": Right(simplified, PLAIN),
    "other threads": Right(unchanged, onnx_runtime(threads=4, level="ORT_DISABLE_ALL")),
}
