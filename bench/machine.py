"""What a benchmark ran on."""

import platform
from pathlib import Path


def cpu_model() -> str:
    """As the kernel names it; the architecture where it does not."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.machine())
