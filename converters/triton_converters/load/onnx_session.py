"""How ONNX Runtime runs in a Job: quietly, and with as many threads as the container has CPUs."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

Found = TypeVar("Found")
NAMED = 12
"""The most operators that a message names."""

ONLY_FATAL = 4
"""Severity of what ends the process, in ONNX Runtime's numbers."""
ONLY_ERRORS = 3
"""Severity of errors, without the warnings about what ONNX Runtime infers itself."""


def session_options(severity: int) -> Any:
    """Return the options of a session that logs from that severity on.

    The operator sets OMP_NUM_THREADS to the container's CPU limit, for PyTorch. ONNX Runtime does not read it, and
    would start a thread for each core of the node.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = severity
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():
        options.intra_op_num_threads = int(threads)
    return options


def apart(function: Callable[..., Found], path: Path, *arguments: Any) -> Found:
    """Return what the function of a graph's file returns, in a process of its own, which the runtime may end.

    Raises StageError(ConversionFailed) if it does, and what the function raises.
    """
    import onnx
    import onnxruntime

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, path, *arguments).result()
        except BrokenProcessPool as error:
            nodes = onnx.load(str(path), load_external_data=False).graph.node
            names = sorted({each.op_type for each in nodes})
            others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
            message = f"onnxruntime {onnxruntime.__version__} crashed as it opened the graph, whose operators are "
            words = f"{message}{', '.join(names[:NAMED])}{others}; use another precision, format or opset"
            raise StageError(Reason.CONVERSION_FAILED, words) from error
