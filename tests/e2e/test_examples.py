"""The large examples: full-sized models become Ready with one candidate and the least possible load."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples import diagnosis, verdict
from examples.example import Example, apply, build, read, remove, train
from examples.waiting import ExampleError, Watcher
from hack.deploy.command import TargetCluster
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus


@dataclass(frozen=True)
class Small:
    """How little of an example is enough."""

    thresholds: tuple[str, ...]
    """Metrics that are gated on."""
    arguments: tuple[str, ...] = ()
    """Of the program that makes the data, after its own: the last one holds."""
    container: str = "containers/0"
    """Where that runs, in the Job's pod."""
    model: int = 0
    """The one with candidates."""
    samples: int = 2
    batch_size: int = 1
    """Of the offline sweep."""


# Of ten classes each in both parts.
PICTURES = ("--fitted=40", "--held-out=16")
# A recommender's requests are of 64 impressions: an AUC wants many.
RECOMMENDER = Small(("auc",), model=1, samples=64, batch_size=64)
EXAMPLES = {
    "resnet50-pyt": Small(("top1", "top5"), PICTURES),
    "dlrm-hps": RECOMMENDER,
    "dcnv2-hps": RECOMMENDER,
    "fastpitch": Small(("mel_range", "seconds"), ("--steps=10",)),
    "nnunet-3d": Small(("dice",), ("--held-out=2",)),
    "resnet50-tf": Small(("top1", "top5"), PICTURES, container="initContainers/0"),
}
AT_A_TIME = 3
CANDIDATE = {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}


def patches(small: Small) -> list[dict[str, Any]]:
    """Of kustomize's form, for an example's Job and its TritonDeployment."""
    fields = {
        f"/spec/models/{small.model}/candidates": [CANDIDATE],
        "/spec/accuracy/maxSamples": small.samples,
        "/spec/performance/offline/batchSizes": [small.batch_size],
        "/spec/performance/online/concurrency": {"start": 1, "end": 1},
        "/spec/performance/measurement": {"requestCount": 1, "stabilityPercent": 999},
    }
    command = f"/spec/template/spec/{small.container}/command/-"
    operations = {
        "TritonDeployment": [{"op": "replace", "path": path, "value": value} for path, value in fields.items()],
        "Job": [{"op": "add", "path": command, "value": argument} for argument in small.arguments],
    }
    return [{"target": {"kind": kind}, "patch": json.dumps(listed)} for kind, listed in operations.items() if listed]


@dataclass(frozen=True)
class Outcome:
    """An example that got ready."""

    asked: TritonDeploymentSpec
    status: TritonDeploymentStatus


def run(cluster: TargetCluster, example: Example, images: Mapping[str, str]) -> Outcome:
    """Train, apply, wait, remove."""
    fewer = patches(EXAMPLES[example.namespace])
    remove(cluster, example)
    try:
        train(cluster, example, images, fewer)
        watcher = Watcher(str(cluster.kubeconfig), example, Console())
        watcher.trained()
        apply(cluster, example, images, fewer)
        status = watcher.ready()
        return Outcome(TritonDeploymentSpec.model_validate(watcher.resource()["spec"]), status)
    except ExampleError as error:
        raise AssertionError(diagnosis.report(cluster, example)) from error
    finally:
        remove(cluster, example)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, kubeconfig: Path, installed: str) -> Iterator[dict[str, Future[Outcome]]]:
    """Every collected example by its name; some at a time, since each waits for pods more than it computes."""
    collected = (getattr(item, "callspec", None) for item in request.session.items)
    names = (spec.params.get("name") for spec in collected if spec is not None)
    chosen = [read(name) for name in names if name in EXAMPLES]
    cluster = TargetCluster(kubeconfig)
    images = {example.namespace: build(cluster, example) for example in chosen}
    with ThreadPoolExecutor(AT_A_TIME) as executor:
        yield {
            example.namespace: executor.submit(run, cluster, example, images[example.namespace]) for example in chosen
        }
        executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_gets_ready_and_is_as_good_as_the_framework(
    outcomes: dict[str, Future[Outcome]], name: str
) -> None:
    outcome = outcomes[name].result()
    status = outcome.status
    assert verdict.failures(status) + verdict.faults(outcome.asked, status) == []
    assert tuple(row.metric for row in status.accuracy if row.threshold) == EXAMPLES[name].thresholds
    assert status.active is not None
    assert float(status.active.throughput) > 0
