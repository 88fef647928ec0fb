"""TritonDeployments for tests."""

from copy import deepcopy
from typing import Any

Body = dict[str, Any]


def candidate(name: str) -> Body:
    """A candidate named FORMAT-PRECISION."""
    form, _, precision = name.rpartition("-")
    return {"name": name, "format": form, "precision": precision}


CANDIDATES = [candidate(name) for name in ("ts-trace-fp32", "ts-script-fp32", "onnx-fp32", "onnx-fp16")]

DEGRADATION: Body = {"thresholds": [{"metric": "accuracy", "maxDegradation": 0.05}]}
"""A gate that the framework cannot miss, so that no Job computes its metrics alone."""

UNANCHORED: Body = {"metrics": None, "accuracy": {}}
"""No metrics, so that no state is an anchor, which no limit of the history drops."""


def a_spec(**fields: Any) -> Body:
    """Four candidates on CPU, a threshold and a latency budget; keywords replace fields."""
    spec: Body = {
        "source": {"uri": "pvc://models/digits"},
        "dataloader": {"entrypoint": "dataloader.py"},
        "metrics": {"entrypoint": "metrics.py"},
        "accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.95}]},
        "models": [a_model()],
        "selection": {"constraints": {"p99Latency": "10ms"}},
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


def an_ensemble(*dense: str, sparse: tuple[str, ...] = ()) -> Body:
    """Embedding tables (or a model with candidates of its own) before a dense model, measured in two sizes."""
    tables: Body = {"name": "sparse", "format": "hps", "entrypoint": "sparse.py", "config": {"maxBatchSize": 4096}}
    if sparse:
        tables |= {"format": "pyt", "candidates": [candidate(name) for name in sparse]}
    model = {"name": "dense", "format": "pyt", "entrypoint": "dense.py", "config": {"maxBatchSize": 0}}
    ensemble = {
        "name": "dlrm",
        "inputs": [
            {"name": "EMB_KEY", "dataType": "INT64", "dims": [1, -1]},
            {"name": "EMB_N_KEY", "dataType": "INT32", "dims": [1, -1]},
        ],
        "outputs": [{"name": "DENSE_OUTPUT", "dataType": "FP32", "dims": [-1, 1]}],
        "steps": [
            {
                "model": "sparse",
                "inputMap": [{"input": "KEYS", "tensor": "EMB_KEY"}, {"input": "NUMKEYS", "tensor": "EMB_N_KEY"}],
                "outputMap": [{"output": "OUTPUT0", "tensor": "LOOKUP_VECTORS"}],
            },
            {
                "model": "dense",
                "inputMap": [{"input": "vectors", "tensor": "LOOKUP_VECTORS"}],
                "outputMap": [{"output": "logits", "tensor": "DENSE_OUTPUT"}],
            },
        ],
    }
    return a_spec(
        models=[tables, model | {"candidates": [candidate(name) for name in dense]}],
        ensemble=ensemble,
        performance={"offline": {"batchSizes": [256, 1024]}},
    )


def a_step(**fields: Any) -> Body:
    """The spec of an ensemble whose first model is a Python step."""
    spec = an_ensemble("onnx-fp32")
    spec["models"][0] = {"name": "sparse", "format": "triton-python", "entrypoint": "steps/first.py", **fields}
    return spec


def a_cascade(*large: str, **fields: Any) -> Body:
    """The spec of an ensemble of one Python step, which asks two models by itself: `small`, and `large` by its ways."""
    spec = a_step(calls=["small", "large"], **fields)
    step, dense = spec["models"]
    spec["models"] = [
        step,
        dense | {"name": "small"},
        dense | {"name": "large", "candidates": list(map(candidate, large))},
    ]
    ensemble = spec["ensemble"]
    ensemble["steps"] = ensemble["steps"][:1]
    ensemble["outputs"] = [{"name": "LOOKUP_VECTORS", "dataType": "FP32", "dims": [-1]}]
    return spec
