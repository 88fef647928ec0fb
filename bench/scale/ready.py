"""`python3 -m bench.scale.ready`: measure memory and the cost of a pass with 100, 1,000 and 5,000 Ready objects.

There is no API server: one run of the simulation with four candidates is copied into the store, 30 objects for each
TritonDeployment, and some of them are reconciled. No pass may send a request. Each size has its own process.
"""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from os import getpid
from statistics import median
from typing import Any

from bench.machine import cpu_model
from bench.scale.plot import draw
from bench.scale.process import usage
from hack.deploy.command import ROOT
from tests.simulation.settled import filled, settled

SIZES = (100, 1000, 5000)
PASSES = 200


def measure(count: int) -> dict[str, Any]:
    """The figures with this number of objects in the process."""
    # What the operator imports, so that the resident size is comparable.
    from triton_operator import __main__  # noqa: F401 - what its import takes is measured
    from triton_operator.runtime.metrics import Metrics
    from triton_operator.runtime.queue import Result
    from triton_operator.runtime.reconcile import Reconciler
    from triton_operator.runtime.store import Store

    cluster, bodies = settled()
    before, store = usage(getpid()).resident_mib, Store()
    keys = filled(store, bodies, count)
    reconciler = Reconciler(None, store, cluster.settings, Metrics(), lambda: cluster.now)  # type: ignore[arg-type]  # no API server is asked
    milliseconds = []
    for number in range(PASSES):
        start = time.thread_time()
        result = reconciler.reconcile(keys[number * count // PASSES])
        milliseconds.append(1000 * (time.thread_time() - start))
        assert result == Result(), "settled: no request was sent, as there is no API server"
    return {
        "objects": count,
        "children": len(bodies) - 1,
        "residentMib": usage(getpid()).resident_mib,
        "residentMibBefore": before,
        "cpuMillisecondsOfAPass": median(milliseconds),
        "longest": max(milliseconds),
    }


def main() -> None:
    """Measure each size in its own process; write the figures and the picture."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    runs = []
    for size in SIZES:
        argv = [sys.executable, "-m", "bench.scale.ready", str(size)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
        print(runs[-1])
    now = datetime.now(UTC)
    document = {"measuredAt": now.isoformat(timespec="seconds"), "cpu": cpu_model(), "ready": runs}
    path = ROOT / f"bench/results/ready-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draw({"cpuMillisecondsOfAPass": [(run["objects"], run["cpuMillisecondsOfAPass"]) for run in runs]})


if __name__ == "__main__":
    main()
