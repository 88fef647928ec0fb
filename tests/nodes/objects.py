"""The objects of these tests: their sources are ConfigMaps, which every node can mount."""

import base64

from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.smallest import FILE, detector

PERCEPTRON = """
import time
import torch
from torch import nn


def get_model():
    time.sleep({seconds})
    torch.manual_seed(0)
    return nn.Linear(8, 4).eval(), {{"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"]}}
"""
LOADER = """
import numpy


def get_dataloader_fn():
    def batches():
        random = numpy.random.default_rng(0)
        yield [str(i) for i in range(8)], {"INPUT__0": random.normal(size=(8, 8)).astype(numpy.float32)}, {}

    return batches
"""
SLOW_SECONDS = 60
"""How long the model takes to load, in the reference and in each conversion: long enough to lose its node meanwhile."""
SHARED = {
    "volumeClaimTemplate": {
        "spec": {
            "resources": {"requests": {"storage": "256Mi"}},
            "storageClassName": "local-path-shared",
            "accessModes": ["ReadWriteMany"],
        }
    }
}
ONE_NODE = {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "256Mi"}}}}}
NODE = "kubernetes.io/hostname"
SPREAD = [{"topologyKey": NODE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]


def create_sources(kubectl: Kubectl) -> None:
    """The ConfigMaps `detector`, an ONNX file, and `slow`, Python files."""
    graph = base64.b64encode(detector()).decode()
    files = {"model.py": PERCEPTRON.format(seconds=SLOW_SECONDS), "loader.py": LOADER}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "detector"}, "binaryData": {FILE: graph}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": files},
    )


def a_graph(repository: Object, *, replicas: int = 1, points: int = 1, prefers: str = "") -> Object:
    """An object that serves a graph. ``points``: of its online sweep; ``prefers``: the node that its pods try first."""
    return _object(
        {
            "source": {"uri": "configmap://detector"},
            "models": [{"name": "detector", "path": FILE}],
            "serving": {"replicas": replicas, "pod": {"topologySpreadConstraints": SPREAD}},
        },
        repository,
        points,
        prefers,
    )


def a_slow_model(repository: Object, prefers: str) -> Object:
    """An object whose conversion takes a minute."""
    candidates = [{"name": "ts-trace-fp32", "format": "ts-trace", "precision": "fp32"}]
    model = {"name": "slow", "format": "pyt", "entrypoint": "model.py", "candidates": candidates}
    spec = {
        "source": {"uri": "configmap://slow"},
        "dataloader": {"entrypoint": "loader.py"},
        "models": [model | {"config": {"maxBatchSize": 8}}],
    }
    return _object(spec, repository, 1, prefers)


def _object(spec: Object, repository: Object, points: int, prefers: str) -> Object:
    performance = {
        "offline": {"batchSizes": [1]},
        "online": {"concurrency": {"start": 1, "end": points}},
        "measurement": {"requestCount": 50 if points == 1 else 3000, "stabilityPercent": 900},
    }
    pod = {"affinity": _preferred(prefers)} if prefers else {}
    every: Object = {"performance": performance, "repository": repository, "pod": pod}
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "spec": spec | {name: value for name, value in every.items() if value},
    }


def _preferred(node: str) -> Object:
    chosen = {"matchExpressions": [{"key": NODE, "operator": "In", "values": [node]}]}
    return {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": chosen}]}
    }
