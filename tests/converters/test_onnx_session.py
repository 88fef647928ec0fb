"""ONNX Runtime in a Job has as many threads as the container has CPUs, and may crash without ending the Job."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto

from tests.converters.onnx_models import Graph
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert import onnx_graph
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.load.onnx_session import ONLY_FATAL, apart, session_options


@pytest.mark.parametrize(("variable", "threads"), [("3", 3), ("", 0), ("many", 0)])
def test_the_threads_follow_the_variable_that_the_operator_sets(
    variable: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 stands for all cores of the node."""
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    options = session_options(ONLY_FATAL)
    assert (options.intra_op_num_threads, options.log_severity_level) == (threads, ONLY_FATAL)


def half_lstm() -> Any:
    """A batch-first LSTM with a linear layer behind it, cast to fp16: onnxruntime 1.31.1 crashes as it optimises it."""
    graph = Graph()
    first = graph.add("Transpose", "x", perm=[1, 0, 2])
    weights = [graph.weight(1, 32, 4), graph.weight(1, 32, 8), graph.weight(1, 64)]
    steps = graph.add("LSTM", first, *weights, hidden_size=8)
    hidden = graph.add("Transpose", graph.add("Squeeze", steps, graph.constant(numpy.array([1]))), perm=[1, 0, 2])
    y = graph.add("Add", graph.add("MatMul", hidden, graph.weight(8, 3)), graph.weight(3))
    shape = ["batch", "n", None]
    return to_fp16(graph.model({"x": (TensorProto.FLOAT, ["batch", "n", 4])}, {"y": (y, TensorProto.FLOAT, shape)}))


def test_a_graph_that_the_runtime_cannot_optimise_gets_the_sizes_of_its_outputs(tmp_path: Path) -> None:
    onnx.save(half_lstm(), str(path := tmp_path / "model.onnx"))
    onnx_graph.declare_output_sizes(path)
    (y,) = onnx.load(str(path)).graph.output
    assert [each.dim_value for each in y.type.tensor_type.shape.dim] == [0, 0, 3]


def die(_path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_runtime_that_crashes_fails_the_candidate_in_words(tmp_path: Path) -> None:
    onnx.save(half_lstm(), str(path := tmp_path / "model.onnx"))
    with pytest.raises(StageError, match=r"onnxruntime [\d.]+ crashed as it opened the graph.* LSTM, ") as error:
        apart(die, path)
    assert error.value.reason is Reason.CONVERSION_FAILED
