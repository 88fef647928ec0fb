"""The examples of the seeds, full-sized models with one candidate and as little load as there can be, to Ready."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deploy.command import Cluster
from examples import diagnosis, verdict
from examples.example import apply, build, read, remove
from examples.waiting import ExampleError, Watcher
from triton_operator.api.spec import TritonDeploymentSpec

CANDIDATE = {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}
TRAINING = {
    "nnunet-3d": ["--patch=32,32,64", "--held-out=2"],
    "resnet50-pyt": ["--fitted=40", "--held-out=8"],
    "fastpitch": ["--steps=10"],
}
"""Arguments of train.py."""
THRESHOLDS = {"nnunet-3d": ["dice"], "resnet50-pyt": ["top1", "top5"], "fastpitch": ["mel_range", "seconds"]}


def patch(kind: str, operations: dict[str, Any]) -> dict[str, Any]:
    """Replaces fields, by their path, of the example's one object of a kind."""
    listed = [{"op": "replace", "path": path, "value": value} for path, value in operations.items()]
    return {"target": {"kind": kind}, "patch": json.dumps(listed)}


def patches(name: str) -> list[dict[str, Any]]:
    command = ["python3", "/files/train.py", "--directory", "/source", *TRAINING[name]]
    return [
        patch("Job", {"/spec/template/spec/containers/0/command": command}),
        patch(
            "TritonDeployment",
            {
                "/spec/models/0/candidates": [CANDIDATE],
                "/spec/accuracy/maxSamples": 2,
                "/spec/performance/offline/batchSizes": [1],
                "/spec/performance/online/concurrency": {"start": 1, "end": 1},
                "/spec/performance/measurement": {"requestCount": 1, "stabilityPercentage": 999},
            },
        ),
    ]


@pytest.mark.parametrize("name", TRAINING)
def test_the_example_gets_ready_and_is_as_good_as_the_framework(kubeconfig: Path, installed: str, name: str) -> None:
    cluster, example = Cluster(kubeconfig), read(name)
    remove(cluster, example)
    try:
        apply(cluster, example, build(cluster, example), patches(name))
        watcher = Watcher(str(kubeconfig), example, Console())
        watcher.trained()
        status = watcher.ready()
        asked = TritonDeploymentSpec.model_validate(watcher.resource()["spec"])
    except ExampleError as error:
        raise AssertionError(diagnosis.report(cluster, example)) from error
    finally:
        remove(cluster, example)
    assert verdict.failures(status) + verdict.faults(asked, status) == []
    assert [row.metric for row in status.accuracy if row.threshold] == THRESHOLDS[name]
    assert status.serving is not None
    assert float(status.serving.throughput) > 0
