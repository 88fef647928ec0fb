"""Reads the resources that a process uses, as Linux counts them."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """The resources at one moment."""

    cpu_seconds: float
    """CPU time since the process began, in user and system mode."""
    resident_mib: float
    peak_mib: float
    """The largest resident size so far."""


def usage(pid: int) -> Usage:
    """Return the usage of one process without its children. Raises OSError if there is none."""
    process = Path("/proc") / str(pid)
    # The name in parentheses may hold spaces; the numbers follow it.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    sizes = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    resident, peak = (int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, resident, peak)
