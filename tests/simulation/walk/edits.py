"""Edits of every section of the spec, by name, so that a printed walk can be read and walked again."""

from collections.abc import Mapping
from typing import Any

from tests.simulation.deployments import CANDIDATES, a_model, a_spec, an_ensemble, candidate

Fields = dict[str, Any]
GPU = {"resourceName": "nvidia.com/gpu", "count": 1}
ROUTE = {"parentRefs": [{"name": "public", "namespace": "gateways"}], "hostnames": ["digits.example"]}
CODE = {name: a_spec()[name] for name in ("dataloader", "metrics")}
"""What models of code need, if an edit before took it away."""


def _models(*models: Any) -> Fields:
    return {"models": list(models), "ensemble": None, "performance": {}, **CODE}


def _code(**fields: Any) -> Fields:
    return _models(a_model(**fields))


def _selection(**fields: Any) -> Fields:
    return {"selection": fields}


PUBLISH = {"uri": "oci://registry.example/published"}
EDITS: Mapping[str, Fields] = {
    "suspended": {"suspend": True},
    "not suspended": {"suspend": False},
    "source: version v2": {"source": {"uri": "pvc://models/digits", "version": "v2"}},
    "source: another": {"source": {"uri": "pvc://models/other"}},
    "source: the first": {"source": {"uri": "pvc://models/digits"}},
    "source: downloaded": {"source": {"uri": "https://models.example/digits.zip"}},
    "source: followed": {"source": {"uri": "oci://registry.example/digits:nightly", "interval": "5m"}},
    "source: staged": {
        "source": {"uri": "oci://registry.example/digits:nightly", "interval": "5m", "onChange": "Stage"}
    },
    "source: only told of": {"source": {"uri": "s3://models/digits", "interval": "10m", "onChange": "Notify"}},
    "source: followed in a bucket": {"source": {"uri": "s3://models/digits", "interval": "5m"}},
    "weights": {"weights": {"uri": "pvc://weights/digits"}},
    "no weights": {"weights": None},
    "data on a claim": {"dataset": {"uri": "pvc://data/digits"}},
    "data that is downloaded": {"dataset": {"uri": "https://models.example/digits.npz"}},
    "no data": {"dataset": None},
    "dataloader: another": CODE | {"dataloader": {"entrypoint": "other.py", "arguments": {"batch_size": "4"}}},
    "metrics: another": CODE | {"metrics": {"entrypoint": "other_metrics.py"}},
    "no metrics": {"metrics": None, "accuracy": {}},
    "models: the first": _code(),
    "models: one candidate": _code(candidates=CANDIDATES[:1]),
    "models: backwards": _code(candidates=CANDIDATES[::-1]),
    "models: with TensorRT": _code(candidates=[candidate("trt-fp16"), *CANDIDATES[2:]]),
    "models: one twice": _code(candidates=[CANDIDATES[2], CANDIDATES[2] | {"name": "again"}]),
    "models: batches of 16": _code(config={"maxBatchSize": 16}),
    "models: another name": _code(name="numbers"),
    "models: another file": _code(entrypoint="other.py"),
    "models: the operator's candidates": _models({"name": "digits", "format": "pyt", "entrypoint": "model.py"}),
    "models: found in the source": _models({"name": "digits", "path": "digits.onnx"})
    | {"dataloader": None, "metrics": None, "accuracy": {}},
    "models: a repository": _models({"name": "digits", "path": "repository/digits.onnx"}),
    "models: a repository by name": _models(
        {"name": "digits", "path": "repository/a.onnx", "format": "triton-repository"}
    ),
    "ensemble": {
        name: value
        for name, value in an_ensemble("onnx-fp32", "ts-trace-fp32", sparse=("onnx-fp32",)).items()
        if name in ("models", "ensemble", "performance", *CODE)
    }
    | {"selection": {}},
    "gpu": {"gpu": GPU},
    "gpu: a product": {"gpu": GPU | {"product": "NVIDIA-H100-80GB-HBM3"}},
    "gpu: another resource": {"gpu": {"resourceName": "nvidia.com/mig-1g.10gb", "count": 1}},
    "gpu: none": {"gpu": None, "models": [a_model()], "ensemble": None, "performance": {}, **CODE},
    "pod: labels": {"pod": {"labels": {"team": "vision"}, "nodeSelector": {"pool": "a"}}},
    "pod: memory": {"pod": {"resources": {"limits": {"memory": "4Gi"}}}},
    "pod: default": {"pod": {}},
    "conversion: one at a time": {"conversion": {"parallelism": 1}},
    "conversion: memory": {"conversion": {"pod": {"resources": {"limits": {"memory": "1Gi"}}}}},
    "conversion: a queue": {"conversion": {"pod": {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}}},
    "conversion: requirements": {"conversion": {"requirements": "requirements.txt"}},
    "conversion: a short deadline": {"conversion": {"activeDeadlineSeconds": 10}},
    "conversion: tolerances": {"conversion": {"tolerances": [{"precision": "fp16", "absolute": 0.1, "relative": 0.1}]}},
    "conversion: default": {"conversion": {}},
    "accuracy: a threshold": CODE | {"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.95}]}},
    "accuracy: too much": CODE | {"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.99}]}},
    "accuracy: none": {"accuracy": {"thresholds": []}},
    "accuracy: worse is ignored": CODE
    | {"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.9}], "regression": {"policy": "Ignore"}}},
    "accuracy: nothing worse": CODE
    | {"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.9}], "regression": {"maxPercent": 0}}},
    "performance: http": {"performance": {"protocol": "http", "sharedMemory": []}},
    "performance: more": {"performance": {"offline": {"batchSizes": [1, 4]}, "online": {"concurrency": {"start": 1}}}},
    "performance: rates": {
        "performance": {"online": {"concurrency": {"start": 1, "end": 2}, "requestRate": {"rates": [100]}}}
    },
    "performance: regression": {"performance": {"regression": {"maxPercent": 5, "block": True}}},
    "performance: default": {"performance": {}},
    "selection: default": _selection(),
    "selection: 10 ms": _selection(constraints={"p99Latency": "10ms"}),
    "selection: 100 us": _selection(constraints={"p99Latency": "100us"}),
    "selection: the closest": _selection(fallback="Closest", constraints={"p99Latency": "100us"}),
    "selection: latency": _selection(scenario="Offline", objectives=[{"metric": "p99Latency"}]),
    "selection: quick search": _selection(search={"mode": "Quick"}),
    "selection: long search": _selection(search={"mode": "Exhaustive", "measurements": 9}),
    "selection: much better": _selection(minImprovementPercent=50, search={"mode": "Quick"}),
    "selection: by hand": _selection(approval="Manual"),
    "no history": {"revisionHistoryLimit": 0},
    "a short history": {"revisionHistoryLimit": 1},
    "repository: retained": {"repository": {"retentionPolicy": {"whenDeleted": "Retain"}}},
    "repository: shared": {"repository": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}},
    "repository: another claim": {"repository": {"claimName": "team"}},
    "repository: default": {"repository": {}},
    "inconclusive: continue": {"rollout": {"onInconclusive": "Continue"}},
    "inconclusive: undo": {"rollout": {"onInconclusive": "Undo"}},
    "inconclusive: hold": {"rollout": {}},
    "rollout: an unknown revision": {"rollout": {"revision": "0123456789abcdef"}},
    "published": {"publish": PUBLISH},
    "published: signed": {"publish": PUBLISH | {"signing": {"secretRef": {"name": "cosign"}}}},
    "published: elsewhere": {"publish": PUBLISH | {"uri": "oci://registry.example/other:stable"}},
    "not published": {"publish": None},
    "an old name": {"repository": {"revisionHistoryLimit": 2}},
    "invalid": {"conversion": {"parallelism": 99}},
}
"""Each replaces whole sections, as in an object that is applied from a file; None removes a section."""
FOLLOWED = [name for name, fields in EDITS.items() if "interval" in fields.get("source", {})]
"""Those after which the source is followed."""

SERVING: Mapping[str, Fields] = {
    "no replicas": {"replicas": 0},
    "1 replica": {"replicas": 1},
    "2 replicas": {"replicas": 2},
    "4 replicas": {"replicas": 4},
    "a deadline of 30 s": {"progressDeadlineSeconds": 30},
    "a deadline of 300 s": {"progressDeadlineSeconds": 300},
    "a soak": {"soak": {"duration": "1m"}},
    "a short soak": {"soak": {"duration": "10s", "minRequests": 1}},
    "no soak": {"soak": None, "route": None},
    "a canary": {"soak": {"duration": "1m"}, "route": ROUTE | {"canary": [5, 50]}},
    "a canary of nearly all": {"soak": {"duration": "20s"}, "route": ROUTE | {"canary": [99]}},
    "a route": {"route": ROUTE},
    "no route": {"route": None},
    "autoscaling": {"autoscaling": {"minReplicas": 1, "maxReplicas": 3}},
    "more autoscaling": {"autoscaling": {"minReplicas": 2, "maxReplicas": 4, "headroomPercent": 50}},
    "no autoscaling": {"autoscaling": None},
    "a backend's setting": {"arguments": ["--backend-config=default-max-batch-size=4"]},
    "an argument": {"arguments": ["--http-thread-count=4"]},
    "no argument": {"arguments": []},
    "fewer clients": {"networkPolicy": {"from": [{"podSelector": {}}]}},
    "all clients": {"networkPolicy": None},
    "another image": {"image": "example/server:special"},
    "a pod": {"pod": {"nodeSelector": {"pool": "gpus"}, "resources": {"limits": {"cpu": "2"}}}},
    "more shared memory": {"sharedMemorySize": "2Gi"},
    "a verbose log": {"arguments": ["--log-verbose=1"]},
    "traces": {"tracing": True},
}
"""Edits of single fields of `serving`; None removes a field."""


def edited(spec: Fields, fields: Fields) -> dict[str, Any]:
    """The fields over the spec, without those that are None."""
    return {name: value for name, value in {**spec, **fields}.items() if value is not None}


def is_accepted(spec: Fields) -> bool:
    """Whether the CRD's rules of several fields accept the spec, as far as these edits can break them.

    Those rules are evaluated by the API server alone.
    """
    selection, performance = spec.get("selection", {}), spec.get("performance", {})
    mode = selection.get("search", {}).get("mode", "None")
    largest = 0 if spec.get("ensemble") else 8
    sizes = performance.get("offline", {}).get("batchSizes", [])
    on_code = all("path" not in model for model in spec["models"])
    built = any(each["format"] == "trt" for model in spec["models"] for each in model.get("candidates", []))
    return (
        not (spec.get("ensemble") and mode != "None")
        and (not largest or max(sizes, default=1) <= largest)
        and (not on_code or "dataloader" in spec)
        and (not built or spec.get("gpu") is not None)
        and (not (spec.get("accuracy") or {}).get("thresholds") or "metrics" in spec)
        and ("metrics" not in spec or "dataloader" in spec)
    )
