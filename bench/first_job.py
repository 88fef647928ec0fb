"""Measures the time from a new TritonDeployment to its first Job, for many objects, one every 200 ms."""

import json
import math
import time
from collections.abc import Sequence
from typing import Any

from kubernetes import client, config

from bench.recorder import Recorder
from hack.deploy.command import TargetCluster

NAMESPACE = "bench-latency"
COUNT = 50
INTERVAL_SECONDS = 0.2
SECONDS = 120


def deployment(name: str) -> dict[str, Any]:
    """An object whose Job's pod fits no node: the operator is measured, not the node."""
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "source": {"uri": "pvc://models/model"},
            "dataloader": {"entrypoint": "dataloader.py"},
            "models": [
                {
                    "name": "model",
                    "format": "pyt",
                    "entrypoint": "model.py",
                    "candidates": [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}],
                }
            ],
            "conversion": {"pod": {"nodeSelector": {"triton-operator.dev/bench": "no-node"}}},
        },
    }


def claim() -> dict[str, Any]:
    """The claim that all objects name as their source; it is never provisioned."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def measure(cluster: TargetCluster) -> list[float]:
    """Return the milliseconds from sending each object to receiving its first Job from a watch, in order of creation.

    Raises CommandError or TimeoutError.
    """
    _delete_namespace(cluster)
    cluster.run("kubectl", "create", "namespace", NAMESPACE)
    cluster.run("kubectl", "apply", "--filename", "-", stdin=json.dumps(claim()))
    recorder = Recorder(str(cluster.kubeconfig), NAMESPACE, {"Job": "batch/v1"})
    api = client.CustomObjectsApi(config.new_client_from_config(str(cluster.kubeconfig)))
    names = [f"latency-{number:02d}" for number in range(COUNT)]
    sent: dict[str, float] = {}
    for name in names:
        sent[name] = time.monotonic()
        body = deployment(name)
        api.create_namespaced_custom_object("triton-operator.dev", "v1alpha1", NAMESPACE, "tritondeployments", body)
        time.sleep(max(0.0, sent[name] + INTERVAL_SECONDS - time.monotonic()))
    recorder.wait(lambda: len(_first_jobs(recorder)) == COUNT, f"a Job for each of {COUNT} objects", SECONDS)
    _delete_namespace(cluster)
    jobs = _first_jobs(recorder)
    return [1000 * (jobs[name] - sent[name]) for name in names]


def _first_jobs(recorder: Recorder) -> dict[str, float]:
    """Return when the first Job of each TritonDeployment was received."""
    found: dict[str, float] = {}
    for moment, job in recorder.versions("Job"):
        for owner in job["metadata"].get("ownerReferences", []):
            if owner["kind"] == "TritonDeployment":
                found.setdefault(owner["name"], moment)
    return found


def _delete_namespace(cluster: TargetCluster) -> None:
    cluster.run("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s", timeout=200)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` percent of the values do not exceed (nearest rank).

    Raises ValueError if there are no values.
    """
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
