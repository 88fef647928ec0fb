"""One model on the cluster: pushed, applied as the smallest object, watched to its end and removed."""

import re
import tempfile
import threading
import time
from pathlib import Path

import yaml

from hack.deploy.command import CommandError, TargetCluster, executable
from tests.e2e import plugin
from tests.e2e.kubectl import Kubectl
from tests.zoo.fetch import fetch
from tests.zoo.models import ZooModel
from tests.zoo.outcome import CLAIM, Outcome, outcome_of, smallest
from triton_plugin.reading.subject import Subject, parse

NAMESPACE = "zoo"
SECONDS = 900
"""Longest time from the object to its end."""
POLL_SECONDS = 5.0
"""A question costs kubectl a tenth of a second of a core, which the measurements need."""
PUSHING = threading.Lock()
"""Held while a model is copied to the claim: the first push makes the claim."""


def run(cluster: TargetCluster, model: ZooModel) -> Outcome:
    """Serve a model and remove it again. Raises CommandError, and what ``fetch`` raises."""
    try:
        _apply(cluster, model)
        start = time.monotonic()
        return outcome_of(model, _end(cluster, model.name), time.monotonic() - start)
    finally:
        _remove(cluster, model.name)


def _apply(cluster: TargetCluster, model: ZooModel) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = fetch(model, Path(folder))
        with PUSHING:
            kubectl = Kubectl(executable("kubectl"), cluster.kubeconfig, NAMESPACE)
            pushed = plugin.run(kubectl, "push", folder, f"pvc://{CLAIM}/{model.name}")
    digest = re.search(r"sha256: ([0-9a-f]{64})", pushed.stdout)
    if digest is None:
        raise CommandError(f"kubectl triton push failed: {pushed.stderr}")
    body = yaml.safe_dump(smallest(model, path, digest[1]))
    cluster.run("kubectl", "apply", "--namespace", NAMESPACE, "--filename", "-", stdin=body)


def _end(cluster: TargetCluster, name: str) -> Subject:
    """Return the object once it is ready or stalled, or as it is when its time is over."""
    deadline = time.monotonic() + SECONDS
    while True:
        subject = parse(cluster.get("tritondeployment", name, "--namespace", NAMESPACE), None)
        if subject.holds("Ready") or subject.holds("Stalled") or time.monotonic() > deadline:
            return subject
        time.sleep(POLL_SECONDS)


def _remove(cluster: TargetCluster, name: str) -> None:
    """Delete the object and wait until its server is gone: the next model needs its memory."""
    options = ("--namespace", NAMESPACE, "--ignore-not-found", "--cascade=foreground", "--timeout=120s")
    try:
        cluster.run("kubectl", "delete", "tritondeployment", name, *options)
    except CommandError as error:
        print(f"{name} was not removed: {error}")
