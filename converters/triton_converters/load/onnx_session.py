"""How ONNX Runtime runs in a Job: quietly, and with as many threads as the container has CPUs."""

import os
from typing import Any

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
