"""`python3 -m bench.latency`: the operator's own latency, on the cluster, as tables and as JSON in bench/results."""

import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import first_job, overhead
from bench.machine import cpu_model
from bench.overhead import Overhead
from examples.example import read
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.devcluster.paths import ClusterError
from hack.progress import step

RESULTS = ROOT / "bench/results"


def main() -> int:
    """Measure both, print and write the raw figures; return the exit status."""
    console = Console(highlight=False, width=120)
    try:
        cluster = set_up()
        with step(f"creation to first Job, {first_job.COUNT} objects"):
            latencies = first_job.measure(cluster)
        with step("one run of the example"):
            digits = read("digits")
            run = overhead.measure(cluster, digits, Watcher(str(cluster.kubeconfig), digits, console))
    except (CommandError, ClusterError, ExampleError, TimeoutError) as error:
        console.print(f"bench: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    console.print(latency_table(latencies), path_table(run))
    console.print(f"raw figures: {write(cluster, latencies, run).relative_to(ROOT)}")
    return 0


def latency_table(milliseconds: list[float]) -> Table:
    """Return a table of percentiles of the time from creation to the first Job."""
    table = Table(title="Creation of a TritonDeployment to its first Job, milliseconds", title_justify="left")
    figures = {"median": 50, "p95": 95, "p99": 99, "maximum": 100}
    for heading in ("objects", *figures):
        table.add_column(heading, justify="right")
    row = [f"{first_job.percentile(milliseconds, percent):.0f}" for percent in figures.values()]
    table.add_row(str(len(milliseconds)), *row)
    return table


def path_table(run: Overhead) -> Table:
    """Return a table of the critical path of one run of the example, and of the gaps in it."""
    table = Table(title="One run of the example: its critical path, seconds", title_justify="left", show_footer=True)
    work = sum(span.seconds for span in run.path)
    ran = sum(run.containers.get(span.name, 0.0) for span in run.path)
    table.add_column("", footer=f"Ready after {run.ready:.1f} s")
    table.add_column("operator before it", footer=f"{run.operator:.2f}", justify="right")
    table.add_column("start", justify="right")
    table.add_column("end", justify="right")
    table.add_column("took", footer=f"{work:.1f}", justify="right")
    table.add_column("of which its containers ran", footer=f"{ran:.0f}", justify="right")
    for span, gap in zip(run.path, run.gaps, strict=False):
        containers = f"{run.containers[span.name]:.0f}" if span.name in run.containers else ""
        table.add_row(
            span.name, f"{gap:.2f}", f"{span.start:.2f}", f"{span.end:.2f}", f"{span.seconds:.2f}", containers
        )
    table.add_row("Ready", f"{run.gaps[-1]:.2f}", f"{run.ready:.2f}")
    return table


def write(cluster: TargetCluster, milliseconds: list[float], run: Overhead) -> Path:
    """Write all measurements and the machine to a file; return the file."""
    now = datetime.now(UTC)
    document: dict[str, Any] = {
        "measuredAt": now.isoformat(timespec="seconds"),
        "revision": cluster.run("git", "describe", "--always", "--dirty").strip(),
        "kubernetes": json.loads(cluster.run("kubectl", "version", "--output", "json"))["serverVersion"]["gitVersion"],
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "loadAverage": os.getloadavg(),
        "creationToFirstJobMilliseconds": [round(value, 1) for value in milliseconds],
        "example": asdict(run) | {"operator": run.operator},
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"latency-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
