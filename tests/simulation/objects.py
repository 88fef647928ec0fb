"""TritonDeployments for tests."""

import copy
from typing import Any

CANDIDATES = [
    {"name": "trace-fp32", "format": "ts-trace", "precision": "fp32"},
    {"name": "script-fp32", "format": "ts-script", "precision": "fp32"},
    {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"},
    {"name": "onnx-fp16", "format": "onnx", "precision": "fp16"},
]


def a_deployment(**spec: Any) -> dict[str, Any]:
    """The body of a valid object; keywords replace fields of its spec."""
    body: dict[str, Any] = {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": "digits", "namespace": "vision", "uid": "uid-1", "generation": 1},
        "spec": {
            "source": {"uri": "pvc://models/digits"},
            "dataloader": {"entrypoint": "dataloader.py"},
            "metrics": {"entrypoint": "metrics.py"},
            "accuracy": {"thresholds": [{"metric": "accuracy", "minimum": "0.95"}]},
            "models": [a_model()],
        },
    }
    body["spec"] |= spec
    return copy.deepcopy(body)


def a_model(**fields: Any) -> dict[str, Any]:
    """The model; keywords replace its fields."""
    return {
        "name": "digits",
        "format": "pyt",
        "entrypoint": "model.py",
        "config": {"maxBatchSize": 32, "dynamicBatching": {}},
        "candidates": copy.deepcopy(CANDIDATES),
        **fields,
    }
