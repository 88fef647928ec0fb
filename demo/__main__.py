"""`python3 -m demo`: sets up what is missing, and takes one model from its training to an answer through a Service."""

import sys
import time

from rich.console import Console
from tritonclient.utils import InferenceServerException

from demo import diagnosis, endpoint, example, inference, verdict
from demo.waiting import DemoError, Watcher
from deploy.command import Cluster, CommandError
from deploy.environment import set_up, step
from deploy.images import load
from devcluster.paths import ClusterError
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin import tables

GRPC_PORT = 8001


def main() -> int:
    """Run the demonstration; returns the exit status, 0 only where everything is as it should be."""
    console = Console(highlight=False)
    start = time.monotonic()
    try:
        cluster = set_up()
    except (CommandError, ClusterError) as error:
        console.print(f"demo: set-up failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    try:
        demonstrate(cluster, console)
    except (CommandError, DemoError, InferenceServerException) as error:
        console.print(diagnosis.report(cluster), markup=False, soft_wrap=True)
        console.print(f"\ndemo: failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    console.print(f"demo: done in {time.monotonic() - start:.0f} s")
    return 0


def demonstrate(cluster: Cluster, console: Console) -> None:
    """Train, deploy, wait, and show. Raises CommandError, DemoError or InferenceServerException."""
    with step("trainer's image"):
        trainer = load(cluster, "digits-trainer")["digits-trainer"]
    with step("namespace, emptied"):
        example.remove(cluster)
    console.print(example.apply(cluster, trainer), markup=False)
    watcher = Watcher(str(cluster.kubeconfig), console)
    with step("training"):
        watcher.trained()
    status = watcher.ready()
    resource = cluster.get("tritondeployment", example.NAME, "--namespace", example.NAMESPACE)
    show(cluster, status, console)
    answer(cluster, console)
    faults = verdict.faults(TritonDeploymentSpec.model_validate(resource["spec"]), status)
    if faults:
        raise DemoError("; ".join(faults))


def show(cluster: Cluster, status: TritonDeploymentStatus, console: Console) -> None:
    """Print the object's columns and its tables."""
    console.print("\n$ kubectl get td --namespace", example.NAMESPACE)
    columns = cluster.run("kubectl", "get", "td", "--namespace", example.NAMESPACE)
    console.print(columns, markup=False, soft_wrap=True)
    # Cut figures would be worse than wrapped lines.
    wide = Console(width=max(console.width, tables.WIDTH), highlight=False)
    if status.performance:
        wide.print(tables.performance("Offline", status.performance.offline))
        wide.print(tables.performance("Online", status.performance.online))
    wide.print(tables.accuracy(status.accuracy))
    wide.print(tables.candidates(status.candidates))


def answer(cluster: Cluster, console: Console) -> None:
    """Ask the Service to read one held-out picture. Raises DemoError where it reads another digit."""
    with endpoint.address(cluster, example.NAMESPACE, example.NAME, GRPC_PORT) as url:
        console.print(f"\none inference request to {url}, model {example.NAME}:")
        try:
            given = inference.ask(url, example.NAME, example.REQUEST)
        except ValueError as error:
            raise DemoError(f"the server's answer is no tensor of logits: {error}") from error
    console.print(given.drawing(), markup=False)
    console.print(f"written: {given.digit}   read: {given.prediction}   probability: {given.probability:.4f}")
    if given.prediction != given.digit:
        raise DemoError(f"the server read {given.prediction} where {given.digit} was written")


if __name__ == "__main__":
    sys.exit(main())
