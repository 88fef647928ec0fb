"""TritonDeployments for tests."""

from copy import deepcopy
from typing import Any

Body = dict[str, Any]


def candidate(name: str) -> Body:
    """A candidate named FORMAT-PRECISION."""
    form, _, precision = name.rpartition("-")
    return {"name": name, "format": form, "precision": precision}


CANDIDATES = [candidate(name) for name in ("ts-trace-fp32", "ts-script-fp32", "onnx-fp32", "onnx-fp16")]


def a_spec(**fields: Any) -> Body:
    """Four candidates on CPU, a threshold and a latency budget; keywords replace fields."""
    spec: Body = {
        "source": {"uri": "pvc://models/digits"},
        "dataloader": {"entrypoint": "dataloader.py"},
        "metrics": {"entrypoint": "metrics.py"},
        "accuracy": {"thresholds": [{"metric": "accuracy", "minimum": "0.95"}]},
        "models": [a_model()],
        "selection": {"constraints": [{"metric": "P99LatencyMicroseconds", "maximum": "10000"}]},
    }
    return deepcopy(spec | fields)


def a_model(**fields: Any) -> Body:
    """The model; keywords replace its fields."""
    model = {
        "name": "digits",
        "format": "pyt",
        "entrypoint": "model.py",
        "config": {"maxBatchSize": 8, "dynamicBatching": {}},
        "candidates": CANDIDATES,
    }
    return deepcopy(model | fields)
