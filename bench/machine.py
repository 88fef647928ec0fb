"""The machine that a benchmark ran on."""

import platform
from pathlib import Path


def cpu_model() -> str:
    """Return the kernel's name of the processor, or else the architecture."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.machine())
