"""How many cores this container may use."""

import math
import os
from pathlib import Path

from triton_cpu.config import Config

CGROUP = Path("/sys/fs/cgroup")


def available(cgroup: Path = CGROUP) -> int:
    """Count the cores of this process: its CPU affinity, or the control group's limit if that is lower."""
    cores = len(os.sched_getaffinity(0))
    limit = quota(cgroup)
    return cores if limit is None else max(1, min(cores, math.ceil(limit)))


def quota(cgroup: Path) -> float | None:
    """Read a container's CPU limit in cores, of control groups version 2 or 1, or None if there is none."""
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
    except OSError:
        try:
            limit = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if limit in ("max", "-1"):
        return None
    return int(limit) / int(period)


def share(instances: int, cores: int) -> int:
    """Divide the cores among the instances of a model: at least one each."""
    return max(1, cores // instances)


def torch_threads(config: Config) -> int:
    """Threads of one call of PyTorch: as the model's parameters say, else this instance's share. Raises ModelError."""
    asked = config.integer("INTRA_OP_THREAD_COUNT") or config.integer("NUM_THREADS")
    return asked or share(config.instances, available())
