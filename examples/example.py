"""An example of manifests/examples: the objects of its kustomization, and applying them to a cluster."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hack.deploy.command import ROOT, CommandError, TargetCluster, executable
from hack.deploy.images import load
from triton_operator.api.status import TritonDeploymentStatus

FOLDER = ROOT / "manifests/examples"
Patches = Sequence[Mapping[str, Any]]
"""Patches in kustomize's form: a target and what changes."""
LOCAL = "triton-operator.local/"
"""Prefix, in the manifests, of the images that this tree builds; `python3 -m hack.imagebuild`'s name follows it."""


@dataclass(frozen=True)
class Example:
    """A rendered folder: one TritonDeployment in a namespace with the folder's name."""

    folder: Path
    deployment: Mapping[str, Any]
    """The TritonDeployment."""
    jobs: tuple[str, ...]
    """Names of the Jobs that prepare its source."""
    images: tuple[str, ...]
    """Names of the images of this tree that the Jobs use."""

    @property
    def name(self) -> str:
        """The TritonDeployment's name."""
        return str(self.deployment["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of all objects, which is also the example's name."""
        return str(self.deployment["metadata"]["namespace"])


def render(folder: Path) -> list[dict[str, Any]]:
    """Return the objects of a kustomization. Raises subprocess.CalledProcessError if kubectl refuses it."""
    argv = [executable("kubectl"), "kustomize", str(folder)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return list(yaml.safe_load_all(text))


def read(name: str) -> Example:
    """Return the example of that name. Raises LookupError if there is none."""
    examples = {example.namespace: example for example in find()}
    if name not in examples:
        raise LookupError(f"there is no example {name}; choose one of {', '.join(examples)}")
    return examples[name]


def variant(name: str) -> Example:
    """Return the example in a folder that changes another one, whose namespace it has. Raises LookupError: no such."""
    if not (FOLDER / name / "kustomization.yaml").exists():
        raise LookupError(f"there is no kustomization in manifests/examples/{name}")
    found = of(FOLDER / name, render(FOLDER / name))
    assert found is not None
    return found


@cache
def find() -> tuple[Example, ...]:
    """Return every folder of manifests/examples that contains an example, sorted by name. They are rendered once."""
    files = FOLDER.glob("*/kustomization.yaml")
    found = [(folder.name, of(folder, render(folder))) for folder in sorted(file.parent for file in files)]
    # Another namespace than the folder's name: a variant of an example, as digits-gpu is.
    return tuple(example for name, example in found if example is not None and example.namespace == name)


def of(folder: Path, objects: list[dict[str, Any]]) -> Example | None:
    """Return the example of these objects; None if they contain no TritonDeployment."""
    deployments = [each for each in objects if each["kind"] == "TritonDeployment"]
    if not deployments:
        return None
    jobs = [each for each in objects if each["kind"] == "Job"]
    pods = [job["spec"]["template"]["spec"] for job in jobs]
    containers = [each for pod in pods for each in (*pod.get("initContainers", ()), *pod["containers"])]
    images = {container["image"] for container in containers}
    return Example(
        folder,
        deployments[0],
        tuple(job["metadata"]["name"] for job in jobs),
        tuple(sorted(image.removeprefix(LOCAL) for image in images if image.startswith(LOCAL))),
    )


def build(cluster: TargetCluster, example: Example) -> dict[str, str]:
    """Build this tree's images that the example uses, load them, and return the references by name.

    Raises CommandError.
    """
    return load(cluster, *example.images) if example.images else {}


def train(cluster: TargetCluster, example: Example, images: Mapping[str, str], patches: Patches = ()) -> str:
    """Apply everything except the TritonDeployment; the Jobs that prepare its source start.

    Returns kubectl's output. Raises CommandError.
    """
    removal = {
        "apiVersion": example.deployment["apiVersion"],
        "kind": example.deployment["kind"],
        "metadata": {"name": example.name, "namespace": example.namespace},
        "$patch": "delete",
    }
    return apply(cluster, example, images, [*patches, {"patch": yaml.safe_dump(removal)}])


def apply(cluster: TargetCluster, example: Example, images: Mapping[str, str], patches: Patches = ()) -> str:
    """`kubectl apply -k` with the images' references and with patches in kustomize's form.

    Returns kubectl's output. Raises CommandError.
    """
    with _overlay(example, images, patches) as folder:
        return cluster.run("kubectl", "apply", "--kustomize", folder)


def drift(cluster: TargetCluster, example: Example, images: Mapping[str, str]) -> list[str]:
    """Return one sentence for each way in which a second apply is not a change of nothing, as GitOps tools ask for."""
    with _overlay(example, images) as folder:
        try:
            cluster.run("kubectl", "diff", "--kustomize", folder)
        except CommandError as error:
            return [f"an applied example differs from its manifests: {error}"]
        lines = cluster.run("kubectl", "apply", "--kustomize", folder).splitlines()
    return [f"a second apply changed something: {line}" for line in lines if not line.endswith(" unchanged")]


@contextmanager
def _overlay(example: Example, images: Mapping[str, str], patches: Patches = ()) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as overlay:
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(example.folder, Path(overlay).resolve())],
            "images": [_override(name, images[name]) for name in example.images],
            "patches": list(patches),
        }
        Path(overlay, "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
        yield overlay


def remove(cluster: TargetCluster, example: Example) -> None:
    """Delete the example's namespace and wait until it is gone. Raises CommandError."""
    cluster.run(
        "kubectl", "delete", "namespace", example.namespace, "--ignore-not-found", "--timeout=180s", timeout=200
    )


def status_of(resource: dict[str, object]) -> TritonDeploymentStatus:
    """Return the status of a TritonDeployment; empty if the operator has not seen it yet."""
    return TritonDeploymentStatus.model_validate(resource.get("status") or {})


def _override(name: str, reference: str) -> dict[str, str]:
    built, _, tag = reference.rpartition(":")
    return {"name": LOCAL + name, "newName": built, "newTag": tag}
