"""The example of manifests/examples/digits in a cluster: applied, observed, removed."""

import os
import tempfile
from pathlib import Path

import yaml

from deploy.command import ROOT, Cluster
from triton_operator.api.status import TritonDeploymentStatus

NAMESPACE = "digits"
NAME = "digits"
TRAIN_JOB = "digits-train"
FOLDER = ROOT / "manifests/examples/digits"
REQUEST = FOLDER / "request.json"
TRAINER_IMAGE = "triton-operator.local/digits-trainer"


def apply(cluster: Cluster, trainer: str, folder: Path = FOLDER) -> str:
    """`kubectl apply -k` of the example with the trainer's image as it was built here; returns what kubectl says.

    Raises CommandError where the API server refuses it.
    """
    name, _, tag = trainer.rpartition(":")
    with tempfile.TemporaryDirectory() as overlay:
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(folder, Path(overlay).resolve())],
            "images": [{"name": TRAINER_IMAGE, "newName": name, "newTag": tag}],
        }
        Path(overlay, "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
        return cluster.run("kubectl", "apply", "--kustomize", overlay)


def remove(cluster: Cluster) -> None:
    """Delete the example's namespace with all that is in it, and wait until it is gone. Raises CommandError."""
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s", timeout=200)


def status_of(resource: dict[str, object]) -> TritonDeploymentStatus:
    """The status of a TritonDeployment as the API server returns it; one without a status was not seen yet."""
    return TritonDeploymentStatus.model_validate(resource.get("status") or {})
