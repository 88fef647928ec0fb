"""`python3 -m bench.search.cluster`: run a search on the cluster for a model that misses its latency budget by default.

Prints the outcome of each candidate and writes the object's whole status to bench/results.
"""

import json
import sys
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from bench.search.candidate import USER
from examples.example import apply, of, remove, render
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError
from hack.deploy.environment import set_up
from hack.devcluster.paths import ClusterError
from hack.progress import step
from triton_operator.api.status import TritonDeploymentStatus


def main() -> int:
    """Apply the object, wait until it is Ready and print the result; return the exit status."""
    console = Console(highlight=False, width=140)
    example = of(USER, render(USER))
    assert example is not None
    try:
        cluster = set_up()
        remove(cluster, example)
        watcher = Watcher(str(cluster.kubeconfig), example, console)
        with step("from the object to Ready"):
            apply(cluster, example, {})
            status = watcher.ready()
        resource = watcher.resource()
        remove(cluster, example)
    except (CommandError, ClusterError, ExampleError) as error:
        console.print(f"bench: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    console.print(table(status))
    document = {"cpu": cpu_model(), "spec": resource["spec"], "status": resource["status"]}
    file = ROOT / f"bench/results/search-cluster-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    console.print(f"raw figures: {file.relative_to(ROOT)}")
    return 0


def table(status: TritonDeploymentStatus) -> Table:
    """Return a table with one line for each candidate."""
    shown = Table(title="Candidates", title_justify="left")
    for heading in ("candidate", "inferences/s", "p99", "meets the budget", "outcome"):
        shown.add_column(heading, justify="left" if heading[0] in "cw" else "right")
    for each in status.candidates:
        meets = {True: "yes", False: "no", None: ""}[each.satisfies_constraints]
        figures = (each.throughput or "", each.p99_latency or "", meets)
        shown.add_row(each.name, *figures, each.message or each.reason or "")
    return shown


if __name__ == "__main__":
    sys.exit(main())
