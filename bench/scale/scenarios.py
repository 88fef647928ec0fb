"""The scenarios: paced creation, a burst, rest and a restart. Each one returns its figures, ready for JSON."""

import asyncio
import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.first_job import percentile
from bench.scale.api import CLAIMS, CONFIG_MAPS, DEPLOYMENTS, EVENTS, JOBS, NETWORK_POLICIES, Api
from bench.scale.audit import AuditLog, Write, counted
from bench.scale.creation import CHILDREN, Creation, create
from bench.scale.floor import WATCHING
from bench.scale.process import Usage, usage
from hack.deploy.command import ROOT
from hack.devcluster.apiserver import ApiServer
from tests.apiserver.operator_process import USER, Operator

Figures = dict[str, Any]
NAMESPACE = "bench"
WARM_UP = 3
INTERVAL_SECONDS = 0.2
QUIET_SECONDS = 8
"""The objects count as settled after this time without a write."""
BUSY_SHARE = 0.05
"""The share of one core below which the operator counts as idle for a second."""
WINDOW_SECONDS = 60
EDITS = 100
EDIT_SECONDS = 0.05
"""Time between two edits, so that passes follow one another."""
CHILD_KINDS = (JOBS, CLAIMS, CONFIG_MAPS, NETWORK_POLICIES, EVENTS)
AFTER_JOB = ("patch configmaps", "patch tritondeployments/status")
"""The writes that are left until other objects have their Jobs."""
_runs = itertools.count(1)


@dataclass(frozen=True)
class Bench:
    """An API server, the operator's account on it, and a client."""

    server: ApiServer
    account: Path
    """The operator's kubeconfig."""
    folder: Path
    api: Api

    def audit(self) -> AuditLog:
        """Start reading the operator's writes."""
        return AuditLog(self.server.audit_log, USER)

    @contextlib.contextmanager
    def operator(self) -> Any:
        """Start a new operator and wait until it is ready."""
        with Operator(self.account, self.folder / "operator.log") as process:
            process.wait_ready()
            time.sleep(2)
            yield process

    @contextlib.contextmanager
    def floor(self) -> Iterator[None]:
        """Start the bare client of floor.py and wait until it watches."""
        argv = (sys.executable, "-m", "bench.scale.floor", str(self.account), NAMESPACE)
        with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                if process.stdout.readline() != f"{WATCHING}\n".encode():
                    raise RuntimeError("the bare client ended before it watched: run it by itself to see why")
                time.sleep(2)
                yield
                if process.poll() is not None:
                    raise RuntimeError("the bare client ended before the burst did: run it by itself to see why")
            finally:
                process.terminate()

    def server_cpu_seconds(self) -> float:
        """Return the CPU time of the API server and etcd."""
        return sum(usage(pid).cpu_seconds for pid in self.server.pids)


async def paced(bench: Bench, count: int) -> Figures:
    """Create one object every 200 ms with a new operator."""
    return await _created(bench, count, INTERVAL_SECONDS)


async def burst(bench: Bench, count: int) -> Figures:
    """Create all objects as fast as the API server accepts them, with a new operator."""
    return await _created(bench, count, None)


async def floor(bench: Bench, count: int) -> Figures:
    """Create all objects as in a burst; a bare client sends the operator's requests."""
    run = next(_runs)
    with bench.floor():
        await create(bench.api, f"warm{run}", WARM_UP, INTERVAL_SECONDS)
        await _settled(bench.audit())
        audit, server_before, began = bench.audit(), bench.server_cpu_seconds(), time.time()
        made = await create(bench.api, f"run{run}", count, None)
        server_first = bench.server_cpu_seconds()
        writes = await _settled(audit)
    await clean(bench.api)
    return (
        _creation_figures(made, count)
        | _written(writes, began)
        | {
            "serverCpuSecondsUntilJobs": server_first - server_before,
        }
    )


async def _created(bench: Bench, count: int, interval: float | None) -> Figures:
    run = next(_runs)
    with bench.operator() as operator:
        await create(bench.api, f"warm{run}", WARM_UP, INTERVAL_SECONDS)
        await _settled(bench.audit())
        audit, before, server_before = bench.audit(), usage(operator.pid), bench.server_cpu_seconds()
        began = time.time()
        made = await create(bench.api, f"run{run}", count, interval)
        first, server_first = usage(operator.pid), bench.server_cpu_seconds()
        writes = await _settled(audit)
        after = usage(operator.pid)
        figures = (
            _creation_figures(made, count)
            | _written(writes, began)
            | {
                "operatorCpuSecondsUntilJobs": first.cpu_seconds - before.cpu_seconds,
                "operatorCpuSecondsUntilSettled": after.cpu_seconds - before.cpu_seconds,
                "serverCpuSecondsUntilJobs": server_first - server_before,
                "residentMib": {"before": before.resident_mib, "after": after.resident_mib, "peak": after.peak_mib},
            }
        )
        if interval is None:
            figures["rest"] = await _rest(bench, operator)
            figures["pass"] = await _passes(bench, operator)
    await clean(bench.api)
    return figures


async def restart(bench: Bench, count: int) -> Figures:
    """Let the objects settle, restart the operator and watch it for a minute."""
    with bench.operator() as operator:
        await create(bench.api, f"run{next(_runs)}", count, None)
        await _settled(bench.audit())
        before = usage(operator.pid)
    await asyncio.sleep(3)
    audit, began, start = bench.audit(), time.time(), time.monotonic()
    with Operator(bench.account, bench.folder / "operator.log") as operator:
        samples = await _samples(operator.pid, start)
        after = usage(operator.pid)
        ready = operator.answer("/readyz")
    writes = audit.new_writes()
    await clean(bench.api)
    return {
        "objects": count,
        "ready": ready[0] == 200,
        "writes": counted([write for write in writes if not write.dry_run]),
        "dryRuns": counted([write for write in writes if write.dry_run]),
        "lastWriteSeconds": max((write.moment - began for write in writes), default=None),
        "quietAfterSeconds": quiet_after(samples),
        "operatorCpuSeconds": after.cpu_seconds,
        "residentMib": {"before": before.resident_mib, "after": after.resident_mib, "peak": after.peak_mib},
    }


async def _rest(bench: Bench, operator: Operator) -> Figures:
    """Measure a minute after everything has settled."""
    audit, before = bench.audit(), usage(operator.pid)
    passes = operator.metric("triton_operator_reconcile_seconds_count")
    await asyncio.sleep(WINDOW_SECONDS)
    after = usage(operator.pid)
    return {
        "seconds": WINDOW_SECONDS,
        "cpuShareOfOneCore": (after.cpu_seconds - before.cpu_seconds) / WINDOW_SECONDS,
        "passes": operator.metric("triton_operator_reconcile_seconds_count") - passes,
        "writes": counted(audit.new_writes()),
        "residentMib": after.resident_mib,
    }


async def _passes(bench: Bench, operator: Operator) -> Figures:
    """Measure the cost of one pass with all objects: label edits cause passes that have nothing to change."""
    names = (await bench.api.names(DEPLOYMENTS))[:EDITS]
    before, seconds, count = usage(operator.pid), *_pass_metrics(operator)
    for name in names:
        await bench.api.merge(DEPLOYMENTS, name, {"metadata": {"labels": {"bench": "edited"}}})
        await asyncio.sleep(EDIT_SECONDS)
    await asyncio.sleep(1)
    after, seconds_after, count_after = usage(operator.pid), *_pass_metrics(operator)
    return {
        "edits": len(names),
        "passes": count_after - count,
        "millisecondsOfAPass": 1000 * (seconds_after - seconds) / (count_after - count),
        "cpuMillisecondsOfAnEdit": 1000 * (after.cpu_seconds - before.cpu_seconds) / len(names),
    }


def _pass_metrics(operator: Operator) -> tuple[float, float]:
    name = "triton_operator_reconcile_seconds"
    return operator.metric(f"{name}_sum"), operator.metric(f"{name}_count")


async def clean(api: Api) -> None:
    """Delete everything; there is no garbage collector, so the children too."""
    for resource in (DEPLOYMENTS, *CHILD_KINDS):
        if resource == CLAIMS:
            # Their protection is a controller's work, and there is none.
            for name in await api.names(resource):
                await api.merge(resource, name, {"metadata": {"finalizers": None}})
        while await api.names(resource):
            await api.delete_all(resource)
            await asyncio.sleep(0.2)


def _written(writes: list[Write], began: float) -> Figures:
    """Return how much was written until when; what follows an object's Job should wait until each has one."""
    last_job = max(write.moment for write in writes if write.what == "create jobs")
    early = [write for write in writes if write.moment < last_job and write.what in AFTER_JOB]
    return {
        "settledSeconds": max(write.moment for write in writes) - began,
        "writes": counted(writes),
        "writtenTooEarly": len(early),
    }


def _creation_figures(made: Creation, count: int) -> Figures:
    figures: Figures = {"objects": count, "createdSeconds": made.created_seconds}
    for child in CHILDREN:
        latencies = made.latencies(child)
        figures[child] = {
            "allSeconds": made.all_seconds(child),
            "milliseconds": {f"p{percent}": percentile(latencies, percent) for percent in (50, 90, 99, 100)},
        }
    return figures


async def _settled(audit: AuditLog) -> list[Any]:
    """Wait until the operator has written nothing for a while; return what it wrote before."""
    writes = audit.new_writes()
    last = time.monotonic()
    while time.monotonic() - last < QUIET_SECONDS:
        await asyncio.sleep(1)
        if new := audit.new_writes():
            writes += new
            last = time.monotonic()
    return writes


async def _samples(pid: int, start: float) -> list[tuple[float, Usage]]:
    """Yield four samples a second during the window."""
    samples = []
    while (elapsed := time.monotonic() - start) < WINDOW_SECONDS:
        samples.append((elapsed, usage(pid)))
        await asyncio.sleep(0.25)
    return samples


def quiet_after(samples: list[tuple[float, Usage]]) -> float:
    """Return the seconds until the end of the last second in which the process used more than BUSY_SHARE of a core."""
    quiet = 0.0
    for index, (moment, used) in enumerate(samples):
        first = index
        while first > 0 and samples[first][0] > moment - 1:
            first -= 1
        then, earlier = samples[first]
        if moment > then and (used.cpu_seconds - earlier.cpu_seconds) / (moment - then) > BUSY_SHARE:
            quiet = moment
    return quiet
