"""Good and bad objects on which `kubectl triton validate` and the API server have to agree."""

from collections.abc import Iterator
from typing import Any

from tests.apiserver import test_crd, test_crd_ensemble
from tests.apiserver.custom_resources import FULL, MINIMAL, changed
from triton_operator.api.server_arguments import ARGUMENTS
from triton_plugin.drafting.validation.validate import schema

JSON = dict[str, Any]

GOOD: dict[str, JSON] = {
    "minimal": MINIMAL,
    "full": FULL,
    "null fields": changed(FULL, {"spec.suspend": None, "spec.selection.constraints.memory": None}),
    "no thresholds and no metrics": changed(FULL, {"spec.metrics": ..., "spec.accuracy.thresholds": []}),
    "online batch at the maximum": changed(FULL, {"spec.performance.online.batchSize": 128}),
    "sixteen points": changed(FULL, {"spec.performance.online.concurrency": {"start": 1, "end": 16}}),
    "until the server is saturated": changed(FULL, {"spec.performance.online.concurrency": {"start": 1}}),
    "until the server is saturated, in steps": changed(
        FULL, {"spec.performance.online.concurrency": {"start": 8, "step": 8}}
    ),
    "ranked by request rates": changed(
        FULL,
        {
            "spec.performance.online.requestRate": {"rates": [100, 200]},
            "spec.selection": {"scenario": "RequestRate"},
        },
    ),
    "a number of no fraction": changed(FULL, {"spec.serving.replicas": 2.0}),
    "a claim by name": changed(FULL, {"spec.repository": {"claimName": "models"}}),
    "no approval yet": changed(FULL, {"spec.selection.approvedRevision": ...}),
    "no search": changed(FULL, {"spec.selection.search": {"mode": "None"}}),
    "int8 on a CPU": changed(FULL, test_crd.INT8),
    "a threshold that one figure meets": changed(
        FULL, {"spec.accuracy.thresholds": [{"metric": "accuracy", "min": 1, "max": 1.0}]}
    ),
    "a threshold of one kind": changed(
        FULL, {"spec.accuracy.thresholds": [{"metric": "accuracy", "maxDegradation": 0.01}]}
    ),
}
GPU = {"product": "NVIDIA-A100-SXM4-80GB", "count": 1}


def objects() -> dict[str, JSON]:
    """The whole table: by name, whether good or bad."""
    ensemble = test_crd_ensemble.BODY
    refused = {case: changed(FULL, changes) for case, (changes, _) in test_crd.REFUSED.items()}
    ensembles = {case: changed(ensemble, changes) for case, (changes, _) in test_crd_ensemble.REFUSED.items()}
    good = {**GOOD, "an ensemble": ensemble, "a cascade": test_crd_ensemble.CASCADE}
    return {**good, **refused, **ensembles, **dict(_formats()), **dict(_servings())}


def _servings() -> Iterator[tuple[str, JSON]]:
    """Every argument with a value that it does not take, and what else a server's arguments and peers may not be."""
    every = {f"{name} of no value": f"{name}=-1" for name in ARGUMENTS}
    for case, argument in {**test_crd.ARGUMENTS, **every}.items():
        yield f"arguments: {case}", changed(MINIMAL, {"spec.serving": {"arguments": [argument]}})
    for case, (peers, _) in test_crd.PEERS.items():
        yield f"peers: {case}", changed(MINIMAL, {"spec.serving": {"networkPolicy": {"from": peers}}})


def _formats() -> Iterator[tuple[str, JSON]]:
    """Every source with every target, and every target with every accelerator."""
    model: Any = schema()["properties"]["spec"]["properties"]["models"]["items"]["properties"]
    candidate = model["candidates"]["items"]["properties"]
    targets, accelerators = candidate["format"]["enum"], candidate["accelerator"]["enum"]
    for source in model["format"]["enum"]:
        for given in ({"entrypoint": "model.py"}, {"path": "model.onnx"}):
            yield f"{source} with {next(iter(given))}", _object(source, given, "onnx", "none")
            for target in targets:
                yield f"{source} with {next(iter(given))} to {target}", _object(source, given, target, "none")
    for target in targets:
        for accelerator in accelerators:
            source = "tf-keras" if target.startswith("tf-") else "pyt"
            yield f"{target} by {accelerator}", _object(source, {"entrypoint": "model.py"}, target, accelerator)
    yield "no product", changed(_object("pyt", {"entrypoint": "model.py"}, "onnx", "trt"), {"spec.gpu": {"count": 1}})


def _object(source: str, given: dict[str, str], target: str, accelerator: str) -> JSON:
    candidate = {"name": "one", "format": target, "precision": "fp32", "accelerator": accelerator}
    model = {"name": "digits", "format": source, **given, "candidates": [candidate]}
    return changed(MINIMAL, {"spec.models": [model], "spec.gpu": GPU})
