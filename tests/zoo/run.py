"""One model on the cluster: pushed, applied as the smallest object, watched to its end and removed."""

import re
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.deploy.command import CommandError, TargetCluster, executable
from tests.e2e import plugin
from tests.e2e.kubectl import Kubectl
from tests.zoo.fetch import fetch
from tests.zoo.models import ZooModel
from triton_plugin.subject import Subject, parse

NAMESPACE = "zoo"
CLAIM = "models"
SECONDS = 900
"""Longest time from the object to its end."""
POLL_SECONDS = 2.0
MESSAGE_CHARACTERS = 300
PUSHING = threading.Lock()
"""Held while a model is copied to the claim: the first push makes the claim."""


@dataclass(frozen=True)
class Outcome:
    """What became of a model."""

    model: ZooModel
    is_ready: bool
    reason: str
    """Why it is not ready, with the message; for a ready one, what is not proven."""
    passed: str
    """Candidates that passed, of all."""
    seconds: float


def run(cluster: TargetCluster, model: ZooModel) -> Outcome:
    """Serve a model and remove it again. Never raises for what the cluster answers: that is the outcome."""
    start = time.monotonic()
    try:
        _apply(cluster, model)
        start = time.monotonic()
        subject = _end(cluster, model.name)
        return _outcome(model, subject, time.monotonic() - start)
    except CommandError as error:
        return Outcome(model, False, f"CommandError: {str(error)[-MESSAGE_CHARACTERS:]}", "", time.monotonic() - start)
    finally:
        cluster.run(
            "kubectl", "delete", "tritondeployment", model.name, "--namespace", NAMESPACE, "--ignore-not-found"
        )  # fmt: skip


def smallest(model: ZooModel, path: str, sha256: str) -> dict[str, Any]:
    """Return the smallest object that serves the model, which lies on the claim in a folder of its name."""
    spec: dict[str, Any] = {
        "source": {"uri": f"pvc://{CLAIM}/{model.name}", "sha256": sha256},
        "models": [{"name": model.name, "path": path}],
    }
    if model.code:
        code = {"format": "pyt", "entrypoint": "model.py", "arguments": {"checkpoint": path}}
        spec |= {"models": [{"name": model.name, **code}], "dataloader": {"entrypoint": "dataloader.py"}}
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": model.name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _apply(cluster: TargetCluster, model: ZooModel) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = fetch(model, Path(folder))
        with PUSHING:
            kubectl = Kubectl(executable("kubectl"), cluster.kubeconfig, NAMESPACE)
            pushed = plugin.run(kubectl, "push", folder, f"pvc://{CLAIM}/{model.name}")
    digest = re.search(r"sha256: ([0-9a-f]{64})", pushed.stdout)
    if digest is None:
        raise CommandError(f"kubectl triton push failed: {pushed.stderr}")
    cluster.run("kubectl", "apply", "--filename", "-", stdin=yaml.safe_dump(smallest(model, path, digest[1])))


def _end(cluster: TargetCluster, name: str) -> Subject:
    """Return the object once it is ready or stalled, or as it is when its time is over."""
    deadline = time.monotonic() + SECONDS
    while True:
        subject = parse(cluster.get("tritondeployment", name, "--namespace", NAMESPACE), None)
        if subject.holds("Ready") or subject.holds("Stalled") or time.monotonic() > deadline:
            return subject
        time.sleep(POLL_SECONDS)


def _outcome(model: ZooModel, subject: Subject, seconds: float) -> Outcome:
    states = [candidate.state for candidate in subject.status.candidates]
    passed = f"{sum(state in ('Passed', 'Selected') for state in states)} of {len(states)}" if states else ""
    is_ready = subject.holds("Ready")
    condition = subject.condition("Verified" if is_ready else "Ready")
    reason = f"{condition.reason}: {condition.message}" if condition else "no condition was written"
    if not is_ready:
        failed = (each for each in subject.status.candidates if each.state == "Failed")
        reason = "; ".join([reason, *(f"{each.name} {each.reason}: {each.message}" for each in failed)])
    return Outcome(model, is_ready, reason[:MESSAGE_CHARACTERS], passed, seconds)
