"""Triton's backend `onnxruntime`: ONNX models on CPUs. What it serves and what it refuses: see `triton_cpu`."""

import sys
from pathlib import Path

# The server starts Python with the distribution's own packages only.
SERVER = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SERVER / "runtimes"), str(SERVER / "site-packages")]

from triton_cpu.config import Config
from triton_cpu.instance import Instance
from triton_cpu.session import Log, Session


def load(config: Config, log_warning: Log) -> Session:
    """Load a model. The runtime is imported only here: the server also starts this file to complete configurations."""
    from triton_cpu.onnx_session import OnnxSession

    return OnnxSession(config, log_warning)


class TritonPythonModel(Instance):
    """The name that Triton's Python backend looks for."""

    load = staticmethod(load)
