"""The example `fraud`: a champion of MLflow, a challenger that takes its place, and a bad one that is refused.

MLflow's server and the training run on this machine, at the address of the development cluster's node.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import tritonclient.grpc
from rich.console import Console
from tritonclient.utils import InferenceServerException

from examples import endpoint, verdict
from examples.asking import TIMEOUT_SECONDS, user_file
from examples.example import FOLDER, Example, apply, remove, train
from examples.line import line
from examples.recording import record
from examples.trust import Trust
from examples.waiting import POLL_SECONDS, ExampleError, Watcher
from hack.deploy.command import TargetCluster
from hack.devcluster.addresses import NODE_ADDRESS
from tests.converters.mlflow_server import PASSWORD, USER, Real, serving
from triton_converters.contract.reasons import Reason
from triton_operator.api.measured_status import AccuracyStatus
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.names import REQUEST_ANNOTATION
from triton_operator.planning.following import REFUSALS
from triton_plugin.telling.progress import conditions_by_type

NAME = "fraud"
"""The example's name, and its model's."""
METRIC = "f1_score"
HELD_OUT = "held-out"
"""The folder that the training writes, and the ConfigMap with its file."""
GRPC_PORT = 8001
BATCH_SIZE = 64
"""The example's `maxBatchSize`."""
PROXY_SECONDS = 15
"""The longest time in which the node's proxy leads to other pods after a Service's selector has changed."""
ROUNDING = 1e-4
"""How far a client's figure may be from the status's: one other answer of 4,000 moves it further."""


@dataclass(frozen=True)
class Version:
    """A version that is registered, and what is to become of it."""

    number: int
    arguments: tuple[str, ...]
    """What the training program gets."""
    champion: int
    """The version that serves afterwards."""

    @property
    def label(self) -> str:
        """What the status calls it."""
        return label(self.number)


VERSIONS = (Version(1, ("--rows=2000",), 1), Version(2, (), 2), Version(3, ("--shuffled=0.3",), 2))


def label(number: int) -> str:
    """Return what the status calls a version behind the alias."""
    return f"version {number} (champion)"


def run(cluster: TargetCluster, example: Example, console: Console, trust: Trust, records: Path | None = None) -> str:
    """Register one version after the other, wait for what becomes of each, and return the example's lines.

    Raises CommandError or ExampleError.
    """
    console.print(f"--- {example.namespace}", markup=False)
    remove(cluster, example)
    start = time.monotonic()
    watcher = Watcher(str(cluster.kubeconfig), example, console)
    told, faults = [], []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        artifacts = ("--artifacts-destination", str(place / "artifacts"))
        try:
            with serving(place, trust.certificate, trust.authority, *artifacts, address=NODE_ADDRESS) as registry:
                for version in VERSIONS:
                    console.print(registry.run(str(FOLDER / NAME / "train.py"), *version.arguments), markup=False)
                    if version.number == 1:
                        _apply(cluster, example, registry)
                    else:
                        _request_look(cluster, example)
                    status = watcher.until(f"through with {version.label}", partial(is_decided, version))
                    measured = _ask(cluster, example, registry, figure(status))
                    told.append(outcome(version, status, measured))
                    faults += version_faults(version, status, measured)
        except OSError as error:
            message = f"MLflow does not run at {NODE_ADDRESS}, the address of the development cluster's node: {error}"
            raise ExampleError(message) from error
        except AssertionError as error:
            raise ExampleError(str(error)) from error
    if records is not None:
        (records / f"{example.namespace}.yaml").write_text(record(cluster, example), encoding="utf-8")
    faults += verdict.faults(TritonDeploymentSpec.model_validate(example.deployment["spec"]), status)
    text = "\n    ".join([line(example.namespace, status, time.monotonic() - start), *told])
    console.print(text, markup=False, soft_wrap=True)
    if faults:
        raise ExampleError("; ".join(faults))
    return text


def is_decided(version: Version, status: TritonDeploymentStatus, generation: int) -> bool:
    """Whether a look has found the version, and it serves or was refused."""
    newer = conditions_by_type(status).get("UpToDate")
    if status.source is None or status.source.latest is None or newer is None:
        return False
    is_found = status.source.latest.label == version.label and newer.observed_generation == generation
    return is_found and (newer.status == "True" or newer.reason in REFUSALS)


def figure(status: TritonDeploymentStatus) -> AccuracyStatus:
    """Return what the status says of the metric."""
    (row,) = [each for each in status.accuracy if each.metric == METRIC]
    return row


def outcome(version: Version, status: TritonDeploymentStatus, measured: float) -> str:
    """Return what became of a version, with its figures, on one line."""
    row = figure(status)
    before = f" ({row.previous} before)" if row.previous else ""
    serves = f"{label(version.champion)} serves: {METRIC} {row.served}{before}, {measured:.4f} of what a client gets"
    newer = conditions_by_type(status)["UpToDate"]
    return serves if newer.status == "True" else f"{serves}; {newer.reason}: {newer.message}"


def version_faults(version: Version, status: TritonDeploymentStatus, measured: float) -> list[str]:
    """Return one sentence for each way in which a version fared otherwise than it should.

    ``measured``: the metric of what a client gets.
    """
    conditions = conditions_by_type(status)
    newer, ready = conditions["UpToDate"], conditions["Ready"]
    wanted = Reason.READY if version.champion == version.number else Reason.WORSE_THAN_BEFORE
    serves = status.source.serving.label if status.source and status.source.serving else "no version"
    found = []
    if newer.reason != wanted:
        found.append(f"{version.label} is {newer.reason}, and not {wanted}: {newer.message}")
    if ready.status != "True":
        found.append(f"after {version.label}, the object is not ready: {ready.message}")
    if serves != label(version.champion):
        found.append(f"after {version.label}, {serves} serves, and not {label(version.champion)}")
    if differs(measured, figure(status)):
        told = figure(status).served
        found.append(f"after {version.label}, a client gets {METRIC} {measured:.4f}, and the status has {told}")
    return found


def differs(measured: float, row: AccuracyStatus) -> bool:
    """Whether a client's figure is another one than the status's."""
    return abs(float(row.served) - measured) > ROUNDING


def _apply(cluster: TargetCluster, example: Example, registry: Real) -> None:
    """Apply the example, with the held-out transactions of the training and the account at the registry."""
    train(cluster, example, {})
    create = ("kubectl", "create", "--namespace", example.namespace)
    account = (f"--from-literal=username={USER}", f"--from-literal=password={PASSWORD}")
    cluster.run(*create, "configmap", HELD_OUT, f"--from-file={registry.folder / HELD_OUT}")
    cluster.run(*create, "secret", "generic", "mlflow", *account)
    uri = [{"op": "replace", "path": "/spec/source/uri", "value": f"mlflow://{registry.host}/{NAME}"}]
    apply(cluster, example, {}, [{"target": {"kind": "TritonDeployment"}, "patch": json.dumps(uri)}])


def _request_look(cluster: TargetCluster, example: Example) -> None:
    """Ask for a look at once, as the last step of a pipeline does."""
    now = f"{REQUEST_ANNOTATION}={datetime.now(UTC):%FT%TZ}"
    what = ("tritondeployment", example.name, "--namespace", example.namespace)
    cluster.run("kubectl", "annotate", *what, "--overwrite", now)


def _ask(cluster: TargetCluster, example: Example, registry: Real, row: AccuracyStatus) -> float:
    """Return the metric of what a client gets, as soon as it is the status's or the proxy had its time.

    Raises ExampleError.
    """
    ends = time.monotonic() + PROXY_SECONDS
    while True:
        measured = _measured(cluster, example, registry.folder / HELD_OUT)
        if not differs(measured, row) or time.monotonic() > ends:
            return measured
        time.sleep(POLL_SECONDS)


def _measured(cluster: TargetCluster, example: Example, held_out: Path) -> float:
    """Send the held-out transactions to the Service, and return the metric of the answers. Raises ExampleError."""
    files = FOLDER / NAME
    batches = list(user_file(files, "dataloader").get_dataloader_fn(str(held_out), BATCH_SIZE)())
    with endpoint.address(cluster, example.namespace, example.name, GRPC_PORT) as url:
        try:
            answers = [_infer(url, inputs["features"]) for _, inputs, _ in batches]
        except InferenceServerException as error:
            raise ExampleError(f"the server did not answer: {error}") from error
    frauds = np.concatenate([labels["prediction"] for _, _, labels in batches])
    calculator = user_file(files, "metrics").MetricsCalculator()
    told = {"prediction": np.concatenate(answers)}
    return float(calculator.calc(ids=range(len(frauds)), y_pred=told, x={}, y_real={"prediction": frauds})[METRIC])


def _infer(url: str, features: np.ndarray) -> np.ndarray:
    """Send transactions, (rows, 8), and return their probabilities. Raises InferenceServerException."""
    given = tritonclient.grpc.InferInput("features", features.shape, "FP32")
    given.set_data_from_numpy(features)
    with tritonclient.grpc.InferenceServerClient(url) as client:
        answer = client.infer(NAME, [given], client_timeout=TIMEOUT_SECONDS).as_numpy("prediction")
    return np.asarray(answer)
