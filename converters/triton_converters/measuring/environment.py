"""The environment of a measurement: the server, its device and the processor."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from triton_converters.contract.results import Environment
from triton_converters.measuring.server import Server

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the pod's own, which is only asked for its size


def observe(server: Server, commands: tuple[str, ...]) -> Environment:
    """Return the environment, from the server and the machine.

    GPU_PRODUCT and TENSORRT_VERSION come from the Job's environment variables, which the operator sets if it knows
    them. The processor is that of the measuring container: the server's too in a profile pod, but perhaps another
    node's if the server is behind a Service.
    """
    return Environment(
        server_version=server.version(),
        device=device(server.configs()),
        gpu_product=os.environ.get("GPU_PRODUCT", ""),
        tensorrt_version=os.environ.get("TENSORRT_VERSION", ""),
        cpu=f"{cpu_model()}, {cpu_count():g} cores",
        perf_analyzer=commands,
    )


def device(configs: Iterable[Mapping[str, Any]]) -> str:
    """Return ``gpu`` or ``cpu`` from the loaded models' instance groups, where tritonserver resolved KIND_AUTO."""
    kinds = {group.get("kind") for config in configs for group in config.get("instance_group", ())}
    return "gpu" if "KIND_GPU" in kinds else "cpu"


def cpu_model(proc: Path = PROC) -> str:
    """Return the first processor's name, or the architecture if the kernel gives no name."""
    for line in (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return os.uname().machine


def cpu_count(cgroup: Path = CGROUP) -> float:
    """Return the cores that this container may use: its limit, or all that it may be scheduled on."""
    available = float(len(os.sched_getaffinity(0)))
    limit = _limit(cgroup)
    return available if limit is None else min(available, limit)


def memory_bytes(cgroup: Path = CGROUP) -> int:
    """Return the memory that this container may use: its limit, or all of the node's."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(cgroup / "memory.max") or _read(cgroup / "memory" / "memory.limit_in_bytes")
    # Without a limit, v2 says "max" and v1 a number beyond any machine's memory.
    return min(physical, int(limit)) if limit.isdecimal() else physical


def free_shared_bytes() -> int:
    """Return how much more shared memory there may be."""
    room = os.statvfs(SHARED_MEMORY)
    return room.f_bavail * room.f_frsize


def resident_bytes(pid: int, proc: Path = PROC) -> int:
    """Return the memory that a process has; 0 if it is gone."""
    pages = _read(proc / str(pid) / "statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 1 else 0


def _limit(cgroup: Path) -> float | None:
    """Return the CPU quota of cgroup v2, else of v1; None if there is none."""
    unified = _read(cgroup / "cpu.max").split()
    if len(unified) == 2 and unified[0] != "max":
        return int(unified[0]) / int(unified[1])
    quota = _read(cgroup / "cpu" / "cpu.cfs_quota_us")
    period = _read(cgroup / "cpu" / "cpu.cfs_period_us")
    if quota and period and int(quota) > 0:
        return int(quota) / int(period)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
