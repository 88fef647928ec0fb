"""The samples of what people serve: Python steps around a network, from the sample's files to a client's answers.

Their steps import packages. A cluster need not reach a package index, so one runs next to each object, with wheels that
this machine downloads.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from tritonclient.utils import InferenceServerException

from examples import asking, endpoint, verdict
from examples.asking import Answer
from examples.example import Example, remove
from examples.line import line
from examples.recording import record
from examples.trust import Trust
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import ROOT, CommandError, TargetCluster, executable
from hack.deploy.images import load
from tests.e2e import plugin, requiring, wheels, workbench
from tests.e2e.kubectl import Kubectl, KubectlError
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.telling.steps import lines

SAMPLES = ROOT / "manifests" / "samples"
GRPC_PORT = 8001


@dataclass(frozen=True)
class Pipeline:
    """A sample, and how to ask it."""

    name: str
    """The name of the sample's file, its object and its namespace."""
    folder: Path
    """The files of its source."""
    ask: Callable[[str, Path], list[Answer]]
    """Sends requests to host:port, of samples in the folder."""
    files: tuple[Path, ...] = ()
    """Further files of its source."""

    @property
    def example(self) -> Example:
        """The sample as an example whose source no Job prepares. Its packages come from the index next to it."""
        body: dict[str, Any] = yaml.safe_load((SAMPLES / f"{self.name}.yaml").read_text(encoding="utf-8"))
        body["metadata"]["namespace"] = self.name
        body["spec"].setdefault("conversion", {})["indexSecretRef"] = {"name": "our-index"}
        return Example(self.folder, body, (), ())


PIPELINES = {
    each.name: each
    for each in (
        Pipeline(
            "picture-to-label",
            SAMPLES / "pictures",
            asking.pictures,
            (SAMPLES / "digits" / "digits.onnx", SAMPLES / "digits" / "digits.npz"),
        ),
        Pipeline("text-to-label", SAMPLES / "texts", asking.texts),
    )
}


def run(cluster: TargetCluster, pipeline: Pipeline, console: Console, trust: Trust, records: Path | None = None) -> str:
    """Push, apply, wait for Ready, ask and judge; return the pipeline's lines. Raises CommandError or ExampleError."""
    example = pipeline.example
    console.print(f"--- {example.namespace}", markup=False)
    remove(cluster, example)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(pipeline.folder, Path(name) / "files"))
        for file in pipeline.files:
            shutil.copy(file, folder)
        try:
            _prepare(cluster, pipeline, example, trust, folder)
        except (KubectlError, subprocess.CalledProcessError) as error:
            raise CommandError(str(error)) from error
        status = Watcher(str(cluster.kubeconfig), example, console).ready()
        seconds = time.monotonic() - start
        answers = _ask(cluster, pipeline, example, folder)
    if records is not None:
        (records / f"{example.namespace}.yaml").write_text(record(cluster, example), encoding="utf-8")
    spec = TritonDeploymentSpec.model_validate(example.deployment["spec"])
    faults = verdict.failures(status) + verdict.faults(spec, status) + asking.faults(answers)
    if not (status.performance and status.performance.steps):
        faults.append("the status does not tell how long each step takes")
    if faults:
        raise ExampleError("; ".join(faults))
    text = report_lines(example.namespace, status, answers, seconds)
    console.print(text, markup=False, soft_wrap=True)
    return text


def report_lines(name: str, status: TritonDeploymentStatus, answers: list[Answer], seconds: float) -> str:
    """Return the line of an example, and below it the answers and the latency by step."""
    steps = (status.performance.steps if status.performance else None) or []
    return "\n".join([line(name, status, seconds), *(f"    {each}" for each in (*answers, *lines(steps)))])


def _prepare(cluster: TargetCluster, pipeline: Pipeline, example: Example, trust: Trust, folder: Path) -> None:
    """Make the namespace, put the files and the packages on a claim, start the index, and apply the object."""
    kubectl = Kubectl(executable("kubectl"), cluster.kubeconfig, example.namespace)
    image = load(cluster, "converter")["converter"]
    kubectl.run("create", "namespace", example.namespace)
    workbench.start(kubectl, image)
    wheels.push(kubectl, pipeline.folder.name)
    requiring.start_index(kubectl, image, trust.certificate)
    pushed = plugin.run(kubectl, "push", str(folder), example.deployment["spec"]["source"]["uri"])
    if pushed.returncode:
        raise CommandError(f"{pushed.stdout}\n{pushed.stderr}")
    kubectl.apply(dict(example.deployment))


def _ask(cluster: TargetCluster, pipeline: Pipeline, example: Example, folder: Path) -> list[Answer]:
    with endpoint.address(cluster, example.namespace, example.name, GRPC_PORT) as url:
        try:
            return pipeline.ask(url, folder)
        except InferenceServerException as error:
            raise ExampleError(f"the server did not answer: {error}") from error
