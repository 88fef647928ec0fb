"""Triton's backend `pytorch`: TorchScript models on CPUs. What it serves and what it refuses: see `triton_cpu`."""

import os
import sys
from pathlib import Path

# The server starts Python with the distribution's own packages only.
SERVER = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SERVER / "runtimes"), str(SERVER / "site-packages")]

from triton_cpu import cores
from triton_cpu.config import Config
from triton_cpu.instance import Instance
from triton_cpu.session import Log, Session


def load(config: Config, log_warning: Log) -> Session:
    """Load a model. The runtime is imported only here: the server also starts this file to complete configurations."""
    # Read when the libraries are loaded. PyTorch's own setting does not reach OpenBLAS, which would start a thread for
    # every core of the machine.
    os.environ["OMP_NUM_THREADS"] = str(cores.torch_threads(config))
    from triton_cpu.torch_session import TorchSession

    return TorchSession(config, log_warning)


class TritonPythonModel(Instance):
    """The name that Triton's Python backend looks for."""

    load = staticmethod(load)
