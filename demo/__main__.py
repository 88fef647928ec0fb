"""`python3 -m demo`: sets up what is missing, and takes one model from its training to an answer through a Service."""

import sys
import time

from rich.console import Console
from tritonclient.utils import InferenceServerException

from demo import inference
from examples import diagnosis, endpoint, verdict
from examples.example import Example, apply, build, drift, remove, variant
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError, TargetCluster
from hack.deploy.environment import set_up
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import ClusterError, cluster_paths
from hack.progress import step
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin import terminal
from triton_plugin.telling import tables

GRPC_PORT = 8001
TRAINER = "digits-trainer"
"""The image of the example's training Job."""


def main() -> int:
    """Run the demonstration; returns the exit status, 0 only where everything is as it should be."""
    console = terminal.console()
    start = time.monotonic()
    try:
        cluster = set_up(TRAINER)
    except (CommandError, ClusterError) as error:
        console.print(f"demo: set-up failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    is_set_up = time.monotonic()
    digits = variant("digits-png")
    try:
        demonstrate(cluster, digits, console)
    except (CommandError, ExampleError, InferenceServerException) as error:
        console.print(diagnosis.report(cluster, digits), markup=False, soft_wrap=True)
        console.print(f"\ndemo: failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    end = time.monotonic()
    console.print(next_steps(digits, foreign=foreign_kubeconfig(cluster_paths()) is not None), markup=False)
    console.print(f"demo: done in {end - start:.0f} s: set-up {is_set_up - start:.0f} s, model {end - is_set_up:.0f} s")
    return 0


def demonstrate(cluster: TargetCluster, digits: Example, console: Console) -> None:
    """Train, deploy, wait, and show. Raises CommandError, ExampleError or InferenceServerException."""
    with step("trainer's image into the cluster"):
        images = build(cluster, digits)
    with step("namespace, emptied"):
        remove(cluster, digits)
    console.print(apply(cluster, digits, images), markup=False)
    watcher = Watcher(str(cluster.kubeconfig), digits, console)
    with step("training"):
        watcher.trained()
    status = watcher.ready()
    show(cluster, digits, status, console)
    answer(cluster, digits, console)
    spec = TritonDeploymentSpec.model_validate(digits.deployment["spec"])
    faults = verdict.failures(status) + verdict.faults(spec, status) + drift(cluster, digits, images)
    if faults:
        raise ExampleError("; ".join(faults))


def show(cluster: TargetCluster, digits: Example, status: TritonDeploymentStatus, console: Console) -> None:
    """Print the object's columns and its tables."""
    console.print("\n$ kubectl get td --namespace", digits.namespace)
    columns = cluster.run("kubectl", "get", "td", "--namespace", digits.namespace)
    console.print(columns, markup=False, soft_wrap=True)
    if status.performance:
        console.print(tables.performance("Offline", status.performance.offline))
        console.print(tables.performance("Online", status.performance.online))
        if status.performance.steps:
            console.print(tables.steps(status.performance.steps))
    console.print(tables.accuracy(status.accuracy))
    console.print(tables.candidates(status.candidates, status.signature))
    console.print(tables.reasons(status.candidates))


def answer(cluster: TargetCluster, digits: Example, console: Console) -> None:
    """Send the file of a held-out picture to the Service. Raises ExampleError where it reads another digit."""
    file = digits.folder / "7.png"
    with endpoint.address(cluster, digits.namespace, digits.name, GRPC_PORT) as url:
        console.print(f"\na client sends the file {file.relative_to(ROOT)} to {url}, model {digits.name}:")
        given = inference.ask(url, digits.name, file)
    console.print(inference.drawing(file.read_bytes()), markup=False)
    console.print(f"written: {given.wanted}   read: {given.label}   probability: {given.probability:.4f}")
    if given.fault:
        raise ExampleError(given.fault)


def next_steps(digits: Example, *, foreign: bool) -> str:
    """Return commands to go on with; `foreign`: somebody else runs the cluster, so only what was made in it goes."""
    place = f"{digits.name} --namespace {digits.namespace}"
    lines = (
        "\nWhat to type next, in this folder:",
        '  eval "$(python3 -m hack.devcluster env)"   # KUBECONFIG and PATH of this shell',
        f"  kubectl triton explain {place}",
        f"  kubectl triton report {place} --file digits.html",
        f"  kubectl delete namespace {digits.namespace}" if foreign else "  make cluster-down",
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
