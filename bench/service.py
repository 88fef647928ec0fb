"""`python3 -m bench.service`: the same load in the profile's pod and through the Service, and next to a busy neighbour.

An object's profile and its measurement through the Service differ by the way of a request and by what else the node
does. This runs the object's own profile and measure Jobs again, one after the other on a node that does nothing else:
the figures differ by the way alone. Then it runs both again next to a pod that keeps every core busy.
"""

import argparse
import copy
import json
import secrets
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from examples.example import Example, apply, build, read, remove, train
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.devcluster.paths import ClusterError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.records import read_record, record_name
from triton_converters.contract.results import MeasureResult, ProfileResult, Row
from triton_operator.names import SERVER_LABEL, STAGE_LABEL, TRITON_DEPLOYMENT_LABEL, results

EXAMPLES = ("digits", "dlrm-hps", "resnet50-pyt")
RESULTS = ROOT / "bench/results"
ROUNDS = 3
JOB_SECONDS = 300
NEIGHBOUR = "busy-neighbour"
NEIGHBOURS_CORE = "100m"
"""CPU that the neighbour requests for each core that it keeps busy: what `kubectl triton init` writes for a Job."""
PROFILE, SERVICE, POD = "in the profile's pod", "through the Service", "by the pod's address"


@dataclass(frozen=True)
class Figure:
    """One measurement: samples a second, and latencies in microseconds."""

    throughput: float
    p99: int

    @classmethod
    def of(cls, row: Row) -> "Figure":
        """The figure of a measurement."""
        return cls(row.throughput, row.p99)


@dataclass(frozen=True)
class Compared:
    """One object's figures at one concurrency, by the way that requests took."""

    example: str
    concurrency: int
    recorded: Mapping[str, Figure]
    """The figures that the object recorded while it was converted and rolled out."""
    quiet: Mapping[str, list[Figure]]
    busy: Mapping[str, list[Figure]]


def main() -> int:
    """Measure, print and write the raw figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.service", description=__doc__)
    parser.add_argument("names", nargs="*", default=EXAMPLES, metavar="NAME", help="an example")
    console = Console(highlight=False, width=120)
    compared: list[Compared] = []
    path = RESULTS / f"service-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    try:
        cluster = set_up()
        for name in parser.parse_args().names:
            compared.append(measure(cluster, read(name), console))
            # After each example: a run that is interrupted leaves those that it has.
            write(path, compared)
    except (CommandError, ClusterError, ExampleError, LookupError, TimeoutError) as error:
        console.print(f"bench: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    console.print(table(compared))
    console.print(f"raw figures: {path.relative_to(ROOT)}")
    return 0


def write(path: Path, compared: list[Compared]) -> None:
    """Write the raw figures as JSON."""
    figures = {"cpu": cpu_model(), "rounds": ROUNDS, "compared": [asdict(each) for each in compared]}
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def table(compared: list[Compared]) -> Table:
    """Return a table of medians, one line for each example and way."""
    found = Table(title=f"The same load by three ways: median of {ROUNDS}", title_justify="left")
    for heading in ("example", "concurrency", "way"):
        found.add_column(heading)
    for heading in ("recorded/s", "p99 us", "quiet/s", "p99 us", "busy node/s", "p99 us"):
        found.add_column(heading, justify="right")
    for each in compared:
        for way, quiet in each.quiet.items():
            recorded, busy = each.recorded.get(way), each.busy.get(way, [])
            figures = [] if recorded is None else [recorded]
            cells = [cell for group in (figures, quiet, busy) for cell in medians(group)]
            found.add_row(each.example, str(each.concurrency), way, *cells)
    return found


def medians(figures: list[Figure]) -> tuple[str, str]:
    """Return the median throughput and p99 as text; empty if there are none."""
    if not figures:
        return "", ""
    throughput = statistics.median(each.throughput for each in figures)
    return f"{throughput:.0f}", f"{statistics.median(each.p99 for each in figures):.0f}"


def measure(cluster: TargetCluster, example: Example, console: Console) -> Compared:
    """Make the example's object Ready and take its figures. Raises CommandError, ExampleError or TimeoutError."""
    remove(cluster, example)
    images = build(cluster, example)
    train(cluster, example, images)
    watcher = Watcher(str(cluster.kubeconfig), example, console)
    watcher.trained()
    apply(cluster, example, images)
    candidate = watcher.ready().active
    if candidate is None:
        raise ExampleError(f"{example.namespace} is Ready without an active revision")
    jobs = {job["metadata"]["labels"][STAGE_LABEL]: job for job in jobs_of(cluster, example, candidate.candidate)}
    entries = cluster.get("configmap", results(example.name), "--namespace", example.namespace)["data"]
    recorded = {stage: recorded_rows(job, entries) for stage, job in jobs.items()}
    concurrency = max(recorded["measure"], key=lambda row: row.throughput).concurrency
    ways = copies(jobs, concurrency, address(cluster, example))
    quiet: dict[str, list[Figure]] = {way: [] for way in ways}
    busy: dict[str, list[Figure]] = {way: [] for way in (PROFILE, SERVICE)}
    for _ in range(ROUNDS):
        for way, figures in quiet.items():
            figures.append(run(cluster, example, *ways[way]))
            console.print(f"{example.namespace} {way}: {figures[-1]}", soft_wrap=True)
    with busy_node(cluster, example, jobs["measure"]):
        for _ in range(ROUNDS):
            for way, figures in busy.items():
                figures.append(run(cluster, example, *ways[way]))
                console.print(f"{example.namespace} {way}, busy node: {figures[-1]}", soft_wrap=True)
    remove(cluster, example)
    at = {stage: next(row for row in rows if row.concurrency == concurrency) for stage, rows in recorded.items()}
    return Compared(
        example.namespace,
        concurrency,
        {PROFILE: Figure.of(at["profile"]), SERVICE: Figure.of(at["measure"])},
        quiet,
        busy,
    )


def jobs_of(cluster: TargetCluster, example: Example, candidate: str) -> list[dict[str, Any]]:
    """Return the profile and the measure Job of a candidate."""
    selector = f"{TRITON_DEPLOYMENT_LABEL}={example.name},triton-operator.dev/candidate={candidate}"
    found = cluster.get("jobs", "--namespace", example.namespace, "--selector", selector)["items"]
    return [job for job in found if job["metadata"]["labels"][STAGE_LABEL] in ("profile", "measure")]


def address(cluster: TargetCluster, example: Example) -> str:
    """Return the address of a pod of the active revision."""
    selector = cluster.get("service", example.name, "--namespace", example.namespace)["spec"]["selector"]
    pods = cluster.get(
        "pods", "--namespace", example.namespace, "--selector", f"{SERVER_LABEL}={selector[SERVER_LABEL]}"
    )
    return str(pods["items"][0]["status"]["podIP"])


def recorded_rows(job: Mapping[str, Any], entries: Mapping[str, str]) -> tuple[Row, ...]:
    """Return the online measurements of a Job as the results ConfigMap has them."""
    stage = job["metadata"]["labels"][STAGE_LABEL]
    name = record_name(stage, request_of(job)["key"])
    return online(read_record(name, entries[name]).result)


def online(result: object) -> tuple[Row, ...]:
    """Return the online measurements of a profile or of a measurement."""
    if not isinstance(result, ProfileResult | MeasureResult) or not result.online:
        raise ExampleError(f"a Job answered without measurements: {result}")
    return result.online


def request_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that a Job's container gets."""
    request: dict[str, Any] = json.loads(_written(job["spec"]["template"]["spec"]))
    return request


def _written(spec: Mapping[str, Any]) -> str:
    text: str = spec["containers"][0]["args"][-1]
    return text


def copies(jobs: Mapping[str, dict[str, Any]], concurrency: int, pod: str) -> dict[str, tuple[dict[str, Any], Any]]:
    """Return by way the Job to run again and its request, with one online measurement."""
    found = {}
    for way, stage in ((PROFILE, "profile"), (SERVICE, "measure"), (POD, "measure")):
        request = request_of(jobs[stage])
        request["online"]["concurrencies"] = [concurrency]
        if "offline" in request:
            offline = request["offline"]
            # The reference wrote inputs for the object's own batch sizes only.
            offline |= {name: offline[name][:1] for name in ("batch_sizes", "concurrencies")}
        if way == POD:
            for name in ("url", "http_url"):
                request["load"][name] = f"{pod}:{request['load'][name].rpartition(':')[2]}"
        found[way] = (jobs[stage], request)
    return found


def again(job: Mapping[str, Any], request: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the Job under another name and key, without what makes it the operator's."""
    template = copy.deepcopy(job["spec"]["template"])
    template["metadata"] = {"labels": {"bench": key}}
    old, new = _written(template["spec"]), json.dumps({**request, "key": key})
    for container in (*template["spec"].get("initContainers", ()), *template["spec"]["containers"]):
        container["args"] = [new if each == old else each for each in container.get("args", ())]
    metadata = {"name": f"bench-{key}", "namespace": job["metadata"]["namespace"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"backoffLimit": 0, "template": template},
    }


def run(cluster: TargetCluster, example: Example, job: Mapping[str, Any], request: Mapping[str, Any]) -> Figure:
    """Run a Job again and return its only online measurement. Raises CommandError, ExampleError or TimeoutError."""
    key = secrets.token_hex(8)
    stage = job["metadata"]["labels"][STAGE_LABEL]
    cluster.run("kubectl", "apply", "--filename", "-", stdin=json.dumps(again(job, request, key)))
    deadline = time.monotonic() + JOB_SECONDS
    while time.monotonic() < deadline:
        pods = cluster.get("pods", "--namespace", example.namespace, "--selector", f"bench={key}")["items"]
        for status in (each for pod in pods for each in pod["status"].get("containerStatuses", [])):
            if end := status["state"].get("terminated"):
                cluster.run("kubectl", "delete", "job", f"bench-{key}", "--namespace", example.namespace)
                outcome = Outcome.from_json(end.get("message", ""))
                if outcome.result is None:
                    raise ExampleError(f"the {stage} Job of {example.namespace}, run again, failed: {outcome.message}")
                (row,) = online(outcome.result)
                return Figure.of(row)
        time.sleep(1)
    raise TimeoutError(f"Job bench-{key} in namespace {example.namespace} did not end within {JOB_SECONDS} s")


@contextmanager
def busy_node(cluster: TargetCluster, example: Example, job: Mapping[str, Any]) -> Iterator[None]:
    """Keep every core of the node busy with a pod that requests as much CPU as Jobs do."""
    spec = job["spec"]["template"]["spec"]
    cores = int(cluster.get("nodes")["items"][0]["status"]["capacity"]["cpu"])
    busy = {
        "image": spec["containers"][0]["image"],
        "command": ["python3", "-c", "while True: pass"],
        "resources": {"requests": {"cpu": NEIGHBOURS_CORE}},
        "securityContext": spec["containers"][0]["securityContext"],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NEIGHBOUR, "namespace": example.namespace},
        "spec": {
            "securityContext": spec["securityContext"],
            "terminationGracePeriodSeconds": 0,
            "containers": [busy | {"name": f"core-{number}"} for number in range(cores)],
        },
    }
    where = ("--namespace", example.namespace)
    cluster.run("kubectl", "apply", "--filename", "-", stdin=json.dumps(body))
    cluster.run("kubectl", "wait", "--for=condition=Ready", f"pod/{NEIGHBOUR}", *where, "--timeout=60s")
    try:
        yield
    finally:
        cluster.run("kubectl", "delete", "pod", NEIGHBOUR, *where)


if __name__ == "__main__":
    sys.exit(main())
