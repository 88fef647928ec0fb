"""`python3 -m bench.scale`: run the scenarios on a separate API server; print a table and write JSON to bench/results.

`--quick` uses 50 and 100 objects: it shows whether the program works; its figures are not for quoting.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench.machine import cpu_model
from bench.scale.api import Api
from bench.scale.scenarios import NAMESPACE, Bench, Figures, burst, floor, paced, restart
from bench.scale.table import table
from hack.deploy.command import ROOT
from hack.devcluster.apiserver import ApiServer
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.operator_process import eventually, install_account

RESULTS = ROOT / "bench/results"
CRD = ROOT / "crds/tritondeployments.triton-operator.dev.yaml"
REPEATS = 3
BURSTS = (100, 1000, 5000)
PACED = 50
RESTARTED = 1000


def main() -> int:
    """Run everything, print the table and write the raw figures; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few objects, once")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"default {REPEATS}; the largest burst runs once")
    parser.add_argument("--objects", type=int, nargs="+", default=BURSTS, help="sizes of the bursts")
    arguments = parser.parse_args()
    console = Console(highlight=False, width=120)
    # Not the default folder: etcd's socket below it would have too long a path.
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ApiServer(Path(folder) / "server") as server:
        figures = asyncio.run(_run(server, Path(folder), arguments))
    console.print(table(figures))
    console.print(f"raw figures: {write(figures).relative_to(ROOT)}")
    return 0


async def _run(server: ApiServer, folder: Path, arguments: argparse.Namespace) -> dict[str, list[Figures]]:
    admin = Kubectl(server.kubeconfig)
    admin("create", "-f", str(CRD))
    admin("create", "namespace", NAMESPACE)
    # kubectl fails where the CRD has no conditions yet.
    eventually(lambda: admin("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=30s"))
    account = install_account(admin, folder)
    figures: dict[str, list[Figures]] = {"paced": [], "burst": [], "floor": [], "restart": []}
    quick = arguments.quick
    bursts = [100] if quick else arguments.objects
    async with Api(server.kubeconfig, NAMESPACE) as api:
        bench = Bench(server, account, folder, api)
        for repeat in range(1 if quick else arguments.repeats):
            _say(f"paced, run {repeat + 1}")
            figures["paced"].append(await paced(bench, PACED))
            for objects in bursts:
                if repeat == 0 or objects < max(BURSTS):
                    _say(f"burst of {objects}, run {repeat + 1}")
                    figures["burst"].append(await burst(bench, objects))
                    _say(f"the floor of a burst of {objects}, run {repeat + 1}")
                    figures["floor"].append(await floor(bench, objects))
            _say(f"restart, run {repeat + 1}")
            figures["restart"].append(await restart(bench, 100 if quick else RESTARTED))
    return figures


def _say(what: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {what}", file=sys.stderr, flush=True)


def write(figures: dict[str, list[Figures]]) -> Path:
    """Write all measurements and the machine to a file; return the file."""
    now = datetime.now(UTC)
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    document = {
        "measuredAt": now.isoformat(timespec="seconds"),
        "revision": revision,
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "loadAverage": os.getloadavg(),
        "python": platform.python_version(),
        **figures,
    }
    path = RESULTS / f"scale-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
