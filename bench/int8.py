"""`python3 -m bench.int8`: INT8 next to fp32 on the cluster, by throughput, latency and the metric of each example.

Each example is applied with two candidates, fp32 and INT8, and with the default windows. INT8's gain and its metric are
those that the object's status shows. The machine should do nothing else.
"""

import argparse
import json
import sys
from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime

import yaml
from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from examples.example import Example, apply, build, read, remove, train
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.devcluster.paths import ClusterError
from triton_operator.api.status import TritonDeploymentStatus

EXAMPLES = ("digits", "nnunet-3d", "resnet50-pyt", "fastpitch")
"""Two trained networks of convolutions, one whose body is drawn by chance, and a transformer."""
CANDIDATES = [
    {"name": "fp32", "format": "onnx", "precision": "fp32"},
    {"name": "int8", "format": "onnx", "precision": "int8"},
]
CHANGES = {
    "target": {"kind": "TritonDeployment"},
    "patch": yaml.safe_dump(
        [
            {"op": "replace", "path": "/spec/models/0/candidates", "value": CANDIDATES},
            {"op": "remove", "path": "/spec/performance/measurement"},
        ]
    ),
}
"""The patch of an example that leaves two candidates, and the default windows."""
RESULTS = ROOT / "bench/results"


@dataclass(frozen=True)
class Line:
    """One candidate of an example, as its status shows it."""

    example: str
    candidate: str
    state: str
    """Its state and the reason for it."""
    message: str
    throughput: str
    """Samples a second at the load of its best measurement; empty if nothing was measured."""
    load: str
    p99: str
    metrics: str
    """Metrics of the served outputs, and of the framework's in brackets."""
    quantization: str
    """How the graph was made, and what of it runs in INT8."""


def main() -> int:
    """Apply, wait, print and write the figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.int8", description=__doc__)
    parser.add_argument("names", nargs="*", default=EXAMPLES, metavar="NAME", help="an example")
    console = Console(highlight=False, width=160)
    lines: list[Line] = []
    try:
        cluster = set_up()
        for name in parser.parse_args().names:
            lines += measured(cluster, read(name), console)
    except (CommandError, ClusterError, ExampleError, LookupError) as error:
        console.print(f"bench.int8: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    console.print(table(lines))
    path = RESULTS / f"int8-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    document = {"cpu": cpu_model(), "lines": [asdict(line) for line in lines]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def measured(cluster: TargetCluster, example: Example, console: Console) -> list[Line]:
    """Return what the example's two candidates came to. Raises CommandError or ExampleError."""
    remove(cluster, example)
    images = build(cluster, example)
    train(cluster, example, images)
    watcher = Watcher(str(cluster.kubeconfig), example, console)
    watcher.trained()
    apply(cluster, example, images, [CHANGES])
    status = watcher.ready()
    remove(cluster, example)
    return lines_of(example.name, status)


def lines_of(example: str, status: TritonDeploymentStatus) -> list[Line]:
    """Return a line for each candidate."""
    framework = {row.metric: row.framework for row in status.accuracy}
    return [
        Line(
            example,
            each.name,
            f"{each.state} {each.reason or ''}".strip(),
            each.message,
            each.throughput,
            each.load,
            each.p99_latency or "",
            ", ".join(f"{row.metric} {row.value} ({framework.get(row.metric, '?')})" for row in each.metrics),
            each.quantization.sentence() if each.quantization else "",
        )
        for each in status.candidates
    ]


def table(lines: list[Line]) -> Table:
    """Return the lines as a table."""
    shown = Table(*(field.name for field in fields(Line)), box=None)
    for each in lines:
        shown.add_row(*astuple(each))
    return shown


if __name__ == "__main__":
    sys.exit(main())
