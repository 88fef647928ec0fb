"""What the API server takes and what it refuses, in the words users see."""

import json
import re
from typing import Any

import pytest

from tests.apiserver.custom_resources import FULL, MINIMAL, changed, named
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.conftest import Attack
from tests.printed_columns import columns
from tests.simulation.answers import repository
from tests.simulation.deployments import a_step, an_ensemble
from tests.unit.test_allowed_arguments import TAKEN
from triton_converters.contract.backend_parameters import PARAMETERS
from triton_converters.contract.formats import (
    AS_GIVEN,
    DECLARING,
    ENSEMBLE,
    FORMATS,
    HPS,
    SOURCE_FORMATS,
    TRITON_PYTHON,
)
from triton_operator.api.resolved import FromRepository

MODEL = "spec.models.0"
CONVERTED = [name for name in SOURCE_FORMATS if name not in (*AS_GIVEN, ENSEMBLE)]
TARGETS = [name for name in FORMATS if name not in AS_GIVEN]
"""What candidates are made from and into; tables and ensembles have a file of their own."""
CANDIDATES = f"{MODEL}.candidates"
OF_ENSEMBLES = {
    HPS: changed(MINIMAL, {"spec": an_ensemble("onnx-fp32")}),
    TRITON_PYTHON: changed(MINIMAL, {"spec": a_step()}),
}
"""Ensembles by the format of their first model, which no single model may have."""
APPARMOR = "container.apparmor.security.beta.kubernetes.io"
SEVENTEEN = [{"name": f"c{i}", "format": "onnx", "precision": "fp32"} for i in range(17)]


def refusal(kubectl: Kubectl, body: dict[str, Any]) -> str:
    """What the API server answers to an object that it does not take."""
    with pytest.raises(KubectlError) as refused:
        kubectl("create", "--validate=false", "--dry-run=server", "-f", "-", body=body)
    return str(refused.value)


@pytest.mark.parametrize("body", [MINIMAL, FULL], ids=["minimal", "full"])
def test_a_good_object_is_taken_as_it_is(kubectl: Kubectl, body: dict[str, Any]) -> None:
    kubectl("create", "--validate=strict", "-f", "-", body=body)
    found = kubectl.get("td", "digits")
    expected = changed(body, {"spec.serving.replicas": 1})["spec"]
    assert found["spec"] == expected, "the API server drops nothing and adds nothing else"
    assert found["status"] == {"observedGeneration": -1}
    assert "finalizers" not in found["metadata"]
    assert "annotations" not in found["metadata"]


@pytest.mark.parametrize("body", [MINIMAL, FULL], ids=["minimal", "full"])
def test_applying_the_same_manifest_again_changes_nothing(kubectl: Kubectl, body: dict[str, Any]) -> None:
    said = [kubectl("apply", "-f", "-", body=body).split()[-1] for _ in range(3)]
    assert said == ["created", "unchanged", "unchanged"]


def test_an_object_can_be_scaled_before_an_operator_saw_it(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", body=MINIMAL)
    assert kubectl.get("td", "digits", "--subresource=scale")["spec"] == {"replicas": 1}
    kubectl("scale", "td", "digits", "--replicas=3")
    assert kubectl.get("td", "digits")["spec"]["serving"] == {"replicas": 3}
    assert kubectl("apply", "-f", "-", body=MINIMAL).split()[-1] == "unchanged"
    assert kubectl.get("td", "digits")["spec"]["serving"] == {"replicas": 3}, "no replicas in a manifest keep them"
    with pytest.raises(KubectlError, match="should be less than or equal to 100"):
        kubectl("scale", "td", "digits", "--replicas=101")


@pytest.mark.parametrize("name", ["a", "a-1", "a" * 40, "digits-v2"])
def test_names_that_leave_room_for_suffixes(kubectl: Kubectl, name: str) -> None:
    assert name in kubectl("create", "--dry-run=server", "-f", "-", body=named(name))


@pytest.mark.parametrize("name", ["a" * 41, "1digits", "digits.v2", "digits-", "Digits", "a_b"])
def test_names_that_a_service_cannot_have(kubectl: Kubectl, name: str) -> None:
    message = refusal(kubectl, named(name))
    assert "metadata.name" in message


BAD_TEXTS = {
    "dot-dot": "../../etc/passwd",
    "slash": "/etc/passwd",
    "semicolon": "a;rm -rf .",
    "dollar": "$(reboot)",
    "backtick": "`reboot`",
    "pipe": "a|b",
    "newline": "a\nb",
    "final-newline": "a\n",
    "nul": "a\x07b",
    "space": "a b",
    "quote": "a'b\"c",
    "long": "a" * 2000,
}
NAMED_FIELDS = {
    "model": f"{MODEL}.name",
    "candidate": f"{CANDIDATES}.0.name",
    "model-entrypoint": f"{MODEL}.entrypoint",
    "model-path": f"{MODEL}.path",
    "dataloader": "spec.dataloader.entrypoint",
    "metrics": "spec.metrics.entrypoint",
    "source": "spec.source.uri",
    "dataset": "spec.dataset.uri",
    "claim": "spec.repository.claimName",
    "conversion-image": "spec.conversion.image",
    "server-image": "spec.serving.image",
    "version": "spec.source.version",
    "gpu-product": "spec.gpu.product",
    "input": "spec.performance.inputShapes.0.input",
}


@pytest.mark.parametrize("field", NAMED_FIELDS)
@pytest.mark.parametrize("text", BAD_TEXTS)
def test_names_that_could_leave_their_place(kubectl_shared: Kubectl, attack: Attack, field: str, text: str) -> None:
    path, value = NAMED_FIELDS[field], BAD_TEXTS[text]
    body = changed(FULL, {"spec.repository": {"claimName": "models"}})
    if field in ("source", "dataset"):
        value = "pvc://models/" + value
    if "entrypoint" in path:
        value += ".py"
    if (field, text) in {("input", "slash"), ("input", "dot-dot")}:
        value = "/" + value  # a tensor's name may hold slashes, and names nothing on a disk
    message = refusal(kubectl_shared, changed(body, {path: value}))
    attack("a spec", f"{field}: {text}", message.rpartition("Invalid value")[2][:100] or message[:100])
    assert re.sub(r"\.(\d+)", r"[\1]", path) in message
    assert any(words in message for words in ("should match", "uri must", "may not be more than", "Too long"))


A_FILE = {f"{MODEL}.format": "onnx", f"{MODEL}.path": "a.onnx", f"{MODEL}.entrypoint": ..., f"{MODEL}.arguments": ...}
INT8 = {
    CANDIDATES: [{"name": "int8", "format": "onnx", "precision": "int8", "quantization": {"calibrationSamples": 8}}],
    # The backend of the only candidate does not know the parameters of the others'.
    f"{MODEL}.config.parameters": ...,
    "spec.gpu": ...,
}
"""A spec whose only candidate is quantized."""

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown format": (
        {f"{CANDIDATES}.0.format": "trt-plan"},
        'supported values: "ts-trace", "ts-script", "onnx", "trt", "tf-savedmodel", "tf-trt"',
    ),
    "requirements for an image of the user's": (
        {"spec.conversion": {"requirements": "requirements.txt", "image": "example/mine:1"}},
        "requirements are installed for the operator's own images",
    ),
    "a requirements file outside the source": (
        {"spec.conversion": {"requirements": "../requirements.txt"}},
        "spec.conversion.requirements in body should match",
    ),
    "an index without requirements": (
        {"spec.conversion": {"indexSecretRef": {"name": "our-index"}}},
        "indexSecretRef is only for the packages of requirements",
    ),
    "unknown precision": ({f"{CANDIDATES}.0.precision": "int4"}, 'supported values: "fp32", "fp16", "int8"'),
    "int8 of a format that is not quantized": (
        {f"{CANDIDATES}.1.precision": "int8"},
        "precision int8 is made by ONNX Runtime's quantizer: set format onnx",
    ),
    "int8 with an accelerator": (
        {f"{CANDIDATES}.0.precision": "int8"},
        "precision int8 runs on the CPU: remove accelerator",
    ),
    "int8 on a GPU": (
        {f"{CANDIDATES}.0": {"name": "int8", "format": "onnx", "precision": "int8"}},
        "precision int8 gains nothing on a GPU: remove the candidate, or spec.gpu",
    ),
    "int8 without a metric": (
        {**INT8, "spec.metrics": ..., "spec.accuracy.thresholds": []},
        "precision int8 is judged by your metric: set spec.metrics and at least one of accuracy.thresholds",
    ),
    "quantization of another precision": (
        {f"{CANDIDATES}.3.quantization": {}},
        "quantization applies only to precision int8: remove it, or set precision int8",
    ),
    "no calibration sample": (
        {f"{CANDIDATES}.0.quantization": {"calibrationSamples": 0}},
        "calibrationSamples in body should be greater than or equal to 1",
    ),
    "an operator's name for its type": (
        {f"{CANDIDATES}.0.quantization": {"excludedOperators": ["/head/Gemm"]}},
        "excludedOperators[0] in body should match",
    ),
    "unknown accelerator": ({f"{CANDIDATES}.0.accelerator": "gpu"}, 'supported values: "none", "cuda", "trt", "amp"'),
    "unknown exporter": ({f"{MODEL}.onnx.exporter": "dynamo"}, 'supported values: "Dynamo", "TorchScript"'),
    "unknown model format": (
        {f"{MODEL}.format": "keras"},
        'supported values: "pyt", "tf-keras", "tf-estimator", "tf-savedmodel", "onnx", "ts-trace", "ts-script"',
    ),
    "unknown scenario": ({"spec.selection.scenario": "Both"}, 'supported values: "Online", "Offline"'),
    "unknown metric": ({"spec.selection.objectives.0.metric": "Speed"}, 'supported values: "throughput"'),
    "too many candidates": ({CANDIDATES: SEVENTEEN}, "must have at most 16 items"),
    "candidate twice": ({f"{CANDIDATES}.1.name": "onnx-trt-fp16"}, "Duplicate value"),
    "candidate's name too long": ({f"{CANDIDATES}.0.name": "a" * 31}, "Too long: may not be more than 30"),
    "no model": ({"spec.models": []}, "models in body should have at least 1 items"),
    "two models": (
        {"spec.models": [*FULL["spec"]["models"], *MINIMAL["spec"]["models"]]},
        "several models, or a model of format hps or triton-python, need an ensemble",
    ),
    "no source": ({"spec.source": ...}, "spec.source: Required value"),
    "no format for code": ({f"{MODEL}.format": ...}, "the format may be left out only for a file or directory"),
    "no format for a file with arguments": (
        {**A_FILE, f"{MODEL}.format": ..., f"{MODEL}.arguments": {"a": "1"}},
        "the format may be left out only for a file or directory in the source: set format, or set path alone",
    ),
    "options of tables for a file": (
        {**A_FILE, f"{MODEL}.format": ..., f"{MODEL}.hps": {"keysPerSample": 2}},
        "the options hps apply only to format hps",
    ),
    "no dataloader for code": (
        {"spec.dataloader": ..., "spec.metrics": ..., "spec.accuracy": ...},
        "inputs can be generated only for a single model of format onnx, xgboost, lightgbm, sklearn, tf-savedmodel or"
        " triton-repository",
    ),
    "metrics without a dataloader": (
        {"spec.dataloader": ..., **A_FILE},
        "metrics judge the answers to real inputs: set spec.dataloader",
    ),
    "no spec": ({"spec": ...}, "spec: Required value"),
    "source of an unknown scheme": ({"spec.source.uri": "ftp://host/model"}, "uri must be one of pvc://CLAIM/PATH"),
    "source over plain http": ({"spec.source.uri": "http://host/model.onnx"}, "uri must be one of pvc://CLAIM/PATH"),
    "source without a file": ({"spec.source.uri": "https://host/models/"}, "uri must be one of pvc://CLAIM/PATH"),
    "source with a query": ({"spec.source.uri": "https://host/a.onnx?X-Signature=1"}, "put credentials into a Secret"),
    "source with credentials": ({"spec.source.uri": "https://user:pw@host/a.onnx"}, "put credentials into a Secret"),
    "Secret for a claim": ({"spec.source.secretRef": {"name": "mine"}}, "secretRef is only for files that are"),
    "artifact without a tag": ({"spec.source.uri": "oci://host/acme/ocr"}, "uri must be one of pvc://CLAIM/PATH"),
    "artifact in capitals": ({"spec.source.uri": "oci://host/Acme/ocr:v1"}, "uri must be one of pvc://CLAIM/PATH"),
    "artifact with credentials": ({"spec.source.uri": "oci://u:pw@host/ocr:v1"}, "put credentials into a Secret"),
    "registered model without a version": (
        {"spec.source": {"uri": "mlflow://host/fraud"}},
        "mlflow://SERVER/NAME needs a version: set version to an alias, or to a number",
    ),
    "ServiceAccount for no bucket": (
        {"spec.source": {"uri": "https://host/a.onnx", "serviceAccountName": "reader"}},
        "serviceAccountName is only for buckets: remove it, or set uri to one of s3://BUCKET/PREFIX",
    ),
    "interval of a claim": (
        {"spec.source": {"uri": "pvc://models/a", "interval": "1h"}},
        "interval is only for files that are downloaded and may change at their URI",
    ),
    "interval of a digest": (
        {"spec.source": {"uri": "oci://host/ocr@sha256:" + "0" * 64, "interval": "1h"}},
        "interval is only for files that are downloaded and may change at their URI",
    ),
    "interval of one version": (
        {"spec.source": {"uri": "s3://models/a", "interval": "1h", "sha256": "0" * 64}},
        "sha256 allows one version alone, and interval asks for newer ones",
    ),
    "an interval of seconds": (
        {"spec.source": {"uri": "s3://models/a", "interval": "30s"}},
        "must be from 5m to 168h",
    ),
    "what becomes of newer files that nobody looks for": (
        {"spec.source": {"uri": "s3://models/a", "onChange": "Notify"}},
        "onChange says what becomes of newer files: set interval",
    ),
    "an image by its digest": (
        {"spec.publish": {"uri": "oci://host/ocr@sha256:" + "0" * 64}},
        "publish.uri must be oci://REGISTRY/REPOSITORY or oci://REGISTRY/REPOSITORY:TAG",
    ),
    "an image at a web server": (
        {"spec.publish": {"uri": "https://host/ocr"}},
        "publish.uri must be oci://REGISTRY/REPOSITORY or oci://REGISTRY/REPOSITORY:TAG",
    ),
    "a revision to serve where nothing is to": (
        {"spec.serving": {"mode": "None"}, "spec.rollout": {"revision": "0123456789abcdef"}},
        "rollout.revision is served, and serving.mode is None: remove one of them",
    ),
    "Secret for data on a claim": (
        {"spec.dataset": {"uri": "pvc://datasets/a", "secretRef": {"name": "mine"}}},
        "secretRef is only for files that are downloaded",
    ),
    "digest of data on a claim": (
        {"spec.dataset": {"uri": "pvc://datasets/a", "sha256": "0" * 64}},
        "data on a claim is mounted as it is, without a digest: remove sha256 and include",
    ),
    "data that is a whole claim": ({"spec.dataset": {"uri": "pvc://datasets"}}, "user code never gets a whole claim"),
    "data that is a whole claim with a slash": (
        {"spec.dataset": {"uri": "pvc://datasets/"}},
        "name it as in pvc://CLAIM",
    ),
    "data of the operator's": (
        {"spec.dataset": {"uri": "pvc://datasets/.triton-operator/sources"}},
        "uri must be one of pvc://CLAIM/PATH",
    ),
    "data of an unknown scheme": ({"spec.dataset": {"uri": "ftp://host/a"}}, "uri must be one of pvc://CLAIM/PATH"),
    "digest not hexadecimal": ({"spec.source.sha256": "x" * 64}, "spec.source.sha256 in body should match"),
    "entrypoint not Python": ({f"{MODEL}.entrypoint": "model.sh"}, "entrypoint in body should match"),
    "argument's name": ({f"{MODEL}.arguments": {"a b": "1"}}, "argument names must begin with a letter or _"),
    "argument too long": ({f"{MODEL}.arguments": {"a": "x" * 1025}}, "Too long: may not be more than 1024"),
    "too many arguments": (
        {f"{MODEL}.arguments": {f"a{i}": "" for i in range(65)}},
        "must have at most 64 items",
    ),
    "accelerators without a GPU": ({"spec.gpu": ...}, "accelerators cuda, trt and amp need a GPU: set spec.gpu"),
    "accelerators with no GPU counted": ({"spec.gpu.count": 0}, "accelerators cuda, trt and amp need a GPU"),
    "a GPU of any product": (
        {"spec.gpu.product": ...},
        "accelerator trt need engines for one GPU product: set spec.gpu.product",
    ),
    "a GPU of no product": ({"spec.gpu.product": ""}, "formats trt and tf-trt and accelerator trt need engines"),
    "opset too old": ({f"{MODEL}.onnx.opset": 10}, "should be greater than or equal to 11"),
    "opset too new": ({f"{MODEL}.onnx.opset": 24}, "should be less than or equal to 23"),
    "workspace below zero": ({f"{MODEL}.tensorrt.workspace": -1}, "should be greater than or equal to 0"),
    "workspace no quantity": ({f"{MODEL}.tensorrt.workspace": "1GB"}, "workspace in body should match"),
    "cores below zero": (
        {"spec.serving.pod": {"resources": {"limits": {"cpu": -1}}}},
        "spec.serving.pod.resources.limits.cpu in body should be greater than or equal to 0",
    ),
    "builder level": ({f"{MODEL}.tensorrt.builderOptimizationLevel": 6}, "should be less than or equal to 5"),
    "code with a path": ({f"{MODEL}.path": "model.onnx"}, "is a Python file: set entrypoint, and remove path"),
    "code without an entrypoint": ({f"{MODEL}.entrypoint": ...}, "is a Python file: set entrypoint, and remove path"),
    "file with an entrypoint": ({f"{MODEL}.format": "onnx"}, "is a file or directory in the source: set path"),
    "file with arguments": (
        {f"{MODEL}.format": "onnx", f"{MODEL}.entrypoint": ..., f"{MODEL}.path": "model.onnx"},
        "remove entrypoint and arguments",
    ),
    "negative GPUs": ({"spec.gpu.count": -1}, "should be greater than or equal to 0"),
    "thresholds without metrics": (
        {"spec.metrics": ...},
        "accuracy.thresholds need a MetricsCalculator: set spec.metrics",
    ),
    "threshold without a bound": (
        {"spec.accuracy.thresholds": [{"metric": "accuracy"}]},
        "a threshold needs a bound: set min, max or maxDegradation",
    ),
    "threshold that nothing meets": (
        {"spec.accuracy.thresholds": [{"metric": "accuracy", "min": 1, "max": 0.5}]},
        "min must not be greater than max: raise max, or lower min",
    ),
    "threshold of whole numbers that nothing meets": (
        {"spec.accuracy.thresholds": [{"metric": "accuracy", "min": 2, "max": 1}]},
        "min must not be greater than max: raise max, or lower min",
    ),
    "threshold no number": (
        {"spec.accuracy.thresholds.0.min": "97%"},
        "spec.accuracy.thresholds[0].min in body must be of type number",
    ),
    "threshold a string": ({"spec.accuracy.thresholds.0.min": "0.97"}, "must be of type number"),
    "degradation below zero": (
        {"spec.accuracy.thresholds.0.maxDegradation": -0.01},
        "maxDegradation in body should be greater than or equal to 0",
    ),
    "tolerance below zero": (
        {"spec.conversion.tolerances.0.relative": -1e-3},
        "relative in body should be greater than or equal to 0",
    ),
    "share of integers above one": (
        {"spec.conversion.tolerances.0.integers": {"share": 2}},
        "share in body should be less than or equal to 1",
    ),
    "constraint as a list": (
        {"spec.selection.constraints": [{"metric": "throughput", "min": "300"}]},
        "must be of type object",
    ),
    "latency without a unit": (
        {"spec.selection.constraints.p99Latency": "20000"},
        "a duration is a number and a unit (us, ms, s, m or h), such as 800us, 20ms or 1.5s: correct it",
    ),
    "latency a number": ({"spec.selection.constraints.p50Latency": 20}, "must be of type string"),
    "latency below zero": ({"spec.selection.constraints.p90Latency": "-1ms"}, "a duration is a number and a unit"),
    "latency in days": ({"spec.selection.constraints.p95Latency": "1d"}, "a duration is a number and a unit"),
    "latency of words": ({"spec.selection.constraints.averageLatency": "1 ms"}, "a duration is a number and a unit"),
    "throughput a string": ({"spec.selection.constraints.throughput": "300"}, "must be of type number"),
    "throughput below zero": (
        {"spec.selection.constraints.throughput": -1},
        "throughput in body should be greater than or equal to 0",
    ),
    "memory no quantity": ({"spec.selection.constraints.memory": "8 GB"}, "memory in body should match"),
    "memory below zero": (
        {"spec.selection.constraints.memory": -1},
        "memory in body should be greater than or equal to 0",
    ),
    "memory of a fraction": ({"spec.selection.constraints.memory": 0.5}, "must be of type integer,string"),
    "metric of no row": ({"spec.selection.objectives.0.metric": "Speed"}, 'supported values: "throughput"'),
    "objective twice": (
        {"spec.selection.objectives": [{"metric": "throughput"}, {"metric": "throughput", "weight": 2}]},
        "Duplicate value",
    ),
    "search without a mode": ({"spec.selection.search.mode": ...}, "spec.selection.search.mode: Required value"),
    "search of an unknown mode": ({"spec.selection.search.mode": "Thorough"}, 'supported values: "None", "Quick"'),
    "search of too few points": (
        {"spec.selection.search.measurements": 7},
        "spec.selection.search.measurements in body should be greater than or equal to 8",
    ),
    "search without an end": (
        {"spec.selection.search.duration": "25h"},
        "must be from 1m to 24h: correct it",
    ),
    "a window of a moment": (
        {"spec.performance.measurement.interval": "99ms"},
        "must be from 100ms to 10m: correct it",
    ),
    "a queue delay of minutes": (
        {f"{MODEL}.config.dynamicBatching.maxQueueDelay": "61s"},
        "must be from 0s to 60s: correct it",
    ),
    "a soak of a moment": ({"spec.serving.soak.duration": "5s"}, "must be from 10s to 24h: correct it"),
    "a soak in words": ({"spec.serving.soak.duration": "5 minutes"}, "a duration is a number and a unit"),
    "a soak of a number": ({"spec.serving.soak.duration": 300}, "must be of type string"),
    "a tolerance below nothing": (
        {"spec.accuracy.regression": {"maxPercent": -1}},
        "should be greater than or equal to 0",
    ),
    "approved by name": (
        {"spec.selection.approvedRevision": "onnx-trt-fp16"},
        "spec.selection.approvedRevision in body should match",
    ),
    "improvement below nothing": (
        {"spec.selection.minImprovementPercent": -1},
        "should be greater than or equal to 0",
    ),
    "regression of nothing": (
        {"spec.performance.regression.maxPercent": 0},
        "should be greater than or equal to 1",
    ),
    "regression without a bound": (
        {"spec.performance.regression": {"block": True}},
        "spec.performance.regression.maxPercent: Required value",
    ),
    "batch over the maximum": (
        {f"{MODEL}.config.maxBatchSize": 64},
        "performance.offline.batchSizes must not exceed maxBatchSize",
    ),
    "batch over the default maximum": (
        {f"{MODEL}.config": ..., "spec.performance.offline.batchSizes": [1, 2]},
        "performance.offline.batchSizes must not exceed maxBatchSize",
    ),
    "batch over the maximum of a file that is no graph": (
        {**A_FILE, f"{MODEL}.format": "ts-trace", f"{MODEL}.config": ..., f"{MODEL}.candidates": ...},
        "performance.offline.batchSizes must not exceed maxBatchSize",
    ),
    "online batch over the maximum": (
        {"spec.performance.online.batchSize": 129},
        "performance.online.batchSize must not exceed maxBatchSize",
    ),
    "preferred batch over the maximum": (
        {f"{MODEL}.config.dynamicBatching.preferredBatchSizes": [64, 129]},
        "dynamicBatching.preferredBatchSizes must not exceed maxBatchSize",
    ),
    "dynamic batching without batches": (
        {f"{MODEL}.config.maxBatchSize": 0, f"{MODEL}.config.dynamicBatching": {}},
        "dynamicBatching needs a batch dimension: set maxBatchSize to at least 1",
    ),
    "range upside down": (
        {"spec.performance.online.concurrency.start": 300},
        "end must not be less than start: raise end",
    ),
    "too many points": ({"spec.performance.online.concurrency.step": 8}, "more than 16 values"),
    "no request rate": ({"spec.performance.online.requestRate": {"rates": []}}, "should have at least 1 items"),
    "a request rate of 0": (
        {"spec.performance.online.requestRate": {"rates": [0]}},
        "should be greater than or equal to 1",
    ),
    "ranking by request rates that are not measured": (
        {"spec.selection.scenario": "RequestRate", "spec.selection.search": ...},
        "scenario RequestRate has nothing to rank: set performance.online.requestRate",
    ),
    "a search by request rates": (
        {"spec.selection.scenario": "RequestRate", "spec.performance.online.requestRate": {"rates": [5]}},
        "a search measures no request rates: set search.mode to None",
    ),
    "step 0": ({"spec.performance.online.concurrency.step": 0}, "should be greater than or equal to 1"),
    "two claims": (
        {"spec.repository.claimName": "models"},
        "claimName and volumeClaimTemplate must not be set together",
    ),
    "size no quantity": (
        {"spec.repository.volumeClaimTemplate.spec.resources.requests.storage": "20 GB"},
        "storage in body should match",
    ),
    "a Python environment": (
        {f"{MODEL}.config.parameters": {"EXECUTION_ENV_PATH": "env.tar.gz"}},
        "config.parameters must be parameters of the backends that serve the model's candidates",
    ),
    "a library of batching": (
        {f"{MODEL}.config.parameters": {"TRITON_BATCH_STRATEGY_PATH": "batching.so"}},
        "Allowed are, by backend, onnxruntime: intra_op_thread_count, inter_op_thread_count,",
    ),
    "a parameter of a backend that serves no candidate": (
        {f"{MODEL}.config.parameters": {"TF_NUM_INTRA_THREADS": "2"}},
        "; tensorflow: TF_NUM_INTRA_THREADS, ",
    ),
    "a parameter of a backend that may serve no candidate": (
        {CANDIDATES: ..., f"{MODEL}.config.parameters": {"TF_NUM_INTRA_THREADS": "2"}},
        "config.parameters must be parameters of the backends that serve the model's candidates",
    ),
    "overrides of five pages": (
        {f"{MODEL}.config.overrides": "#" * 4097},
        "Too long: may not be more than 4096",
    ),
    "a path in a backend's parameter": (
        {f"{MODEL}.config.parameters": {"gpu_mem_limit": "/etc/passwd"}},
        "config.parameters.gpu_mem_limit in body should match",
    ),
    "fewer replicas at most than at least": (
        {"spec.serving.autoscaling": {"minReplicas": 3, "maxReplicas": 2}},
        "minReplicas must not be greater than maxReplicas: raise maxReplicas, or lower minReplicas",
    ),
    "an autoscaler by a saturation in shared memory": (
        {"spec.serving.autoscaling": {"maxReplicas": 2}},
        "serving.autoscaling needs what a replica does over the network: take Online out of performance.sharedMemory,"
        " or remove autoscaling",
    ),
    "a sweep in shared memory twice": (
        {"spec.performance.sharedMemory": ["Offline", "Offline"]},
        "spec.performance.sharedMemory[1]: Duplicate value",
    ),
    "a canary without a soak": (
        {"spec.serving.soak": ...},
        "route.canary needs serving.soak, whose fields judge each step: add `soak: {}`",
    ),
    "a canary that falls": (
        {"spec.serving.route.canary": [25, 5]},
        "canary must list each share once, in rising order, such as [5, 25, 50]",
    ),
    "a share twice": (
        {"spec.serving.route.canary": [5, 5]},
        "canary must list each share once, in rising order, such as [5, 25, 50]",
    ),
    "a canary of everything": (
        {"spec.serving.route.canary": [100]},
        "should be less than or equal to 99",
    ),
    "a route without a Gateway": (
        {"spec.serving.route.parentRefs": ...},
        "spec.serving.route.parentRefs: Required value",
    ),
    "a host name with a port": (
        {"spec.serving.route.hostnames": ["digits.example:80"]},
        "spec.serving.route.hostnames[0] in body should match",
    ),
    "too many replicas": ({"spec.serving.replicas": 101}, "should be less than or equal to 100"),
    "a string for a number": ({"spec.serving.replicas": "1"}, "must be of type integer"),
    "a string for a boolean": ({"spec.suspend": "yes"}, "must be of type boolean"),
    "a label that a Service selects by": (
        {"spec.conversion.pod.labels": {"triton-operator.dev/server": "digits-0123456789"}},
        "keys that are reserved for the operator or Kubernetes must not be set: remove or rename them",
    ),
    "a label that says whose a pod is": (
        {"spec.serving.pod.labels": {"app.kubernetes.io/managed-by": "triton-operator"}},
        "Reserved keys are app.kubernetes.io/name, app.kubernetes.io/instance",
    ),
    "a label that a controller counts pods by": (
        {"spec.serving.pod.labels": {"pod-template-hash": "0123456789"}},
        "controller-uid, pod-template-hash, pod-template-generation",
    ),
    "a label of another Job": (
        {"spec.conversion.pod.labels": {"batch.kubernetes.io/controller-uid": "0"}},
        "that begin with triton-operator.dev/, batch.kubernetes.io/",
    ),
    "too many labels": (
        {"spec.serving.pod.labels": {f"label-{i}": "" for i in range(33)}},
        "must have at most 32 items",
    ),
    "a label that no pod can have": (
        {"spec.serving.pod.labels": {"team": "a b"}},
        "spec.serving.pod.labels.team in body should match",
    ),
    "too many annotations": (
        {"spec.conversion.pod.annotations": {f"note-{i}": "" for i in range(33)}},
        "must have at most 32 items",
    ),
    "a note of two pages": (
        {"spec.conversion.pod.annotations": {"note": "x" * 1025}},
        "Too long: may not be more than 1024",
    ),
    "a key of a kilobyte": (
        {"spec.serving.pod.nodeSelector": {"x" * 1024: "true"}},
        "keys must be names as Kubernetes takes them, such as team or example.com/team",
    ),
    "a resource without a name": (
        {"spec.serving.pod.resources": {"limits": {"": "1"}}},
        "at most 63 characters after a prefix of at most 253: correct the key",
    ),
    "too many tolerations": (
        {"spec.serving.pod.tolerations": [{"key": f"taint-{i}", "operator": "Exists"} for i in range(17)]},
        "must have at most 16 items",
    ),
    "an affinity that is a list": (
        {"spec.serving.pod.affinity": [[[[]]]]},
        "must be of type object",
    ),
    "an annotation that lifts AppArmor": (
        {"spec.conversion.pod.annotations": {f"{APPARMOR}/convert": "unconfined"}},
        f"{APPARMOR}/",
    ),
    "a variable that loads a library": (
        {"spec.pod.env": [{"name": "LD_PRELOAD", "value": "evil.so"}]},
        "an environment variable that is reserved must not be set: remove it",
    ),
    "a variable by which CUDA loads a library": (
        {"spec.serving.pod.env": [{"name": "CUDA_INJECTION64_PATH", "value": "/tmp/evil.so"}]},
        "an environment variable that is reserved must not be set: remove it",
    ),
    "a variable of the operator's": (
        {"spec.conversion.pod.env": [{"name": "HOME", "value": "/"}]},
        "Reserved are HOME, PATH, ENV",
    ),
    "a variable of NVIDIA's runtime": (
        {"spec.serving.pod.env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
        "and all that begin with LD_, GLIBC_, OPENSSL_, PYTHON, TORCH_FORCE_, NVIDIA_, TRITON, KUBERNETES_",
    ),
    "a proxy": ({"spec.pod.env": [{"name": "https_proxy"}]}, "an environment variable that is reserved"),
    "a variable twice": ({"spec.pod.env": [{"name": "A"}, {"name": "A", "value": "1"}]}, "Duplicate value"),
    "a variable of two words": ({"spec.pod.env": [{"name": "A B"}]}, "spec.pod.env[0].name in body should match"),
    "root": ({"spec.pod.runAsUser": 0}, "runAsUser in body should be greater than or equal to 1"),
    "pull secret": ({"spec.pod.imagePullSecrets": [{"name": "a/b"}]}, "imagePullSecrets[0].name in body"),
}


DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    "uri",
    [
        "configmap://code",
        "https://host/a.onnx",
        "hf://acme/ocr",
        "oci://host:5000/a/b_c/d.e:v1.2",
        f"oci://host/a@{DIGEST}",
        "mlflow://host:5000/prefix/fraud%20model",
    ],
)
def test_source_weights_and_dataset_take_every_scheme(kubectl_shared: Kubectl, uri: str) -> None:
    for field in ("source", "weights", "dataset"):
        body = changed(FULL, {f"spec.{field}": {"uri": uri, "version": "v1", "sha256": "0" * 64, "include": ["*"]}})
        assert "created" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


def test_a_dataset_on_a_claim_is_taken_with_a_version(kubectl_shared: Kubectl) -> None:
    body = changed(FULL, {"spec.dataset": {"uri": "pvc://datasets/a", "version": "v2"}})
    assert "created" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


def test_a_bucket_is_taken_with_a_serviceaccount(kubectl_shared: Kubectl) -> None:
    body = changed(FULL, {"spec.source": {"uri": "gs://models/a", "serviceAccountName": "reader"}})
    assert "created" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_why(kubectl_shared: Kubectl, case: str) -> None:
    changes, expected = REFUSED[case]
    message = refusal(kubectl_shared, changed(FULL, changes))
    assert expected in message, message
    assert "is invalid" in message


def of_format(source: str, target: str, accelerator: str = "none") -> dict[str, Any]:
    """A GPU object of one model and one candidate."""
    entry = {"path": "model.bin"} if SOURCE_FORMATS[source].is_file else {"entrypoint": "model.py"}
    tried = {"name": "only", "format": target, "precision": "fp32", "accelerator": accelerator}
    model = {"name": "m", "format": source, "candidates": [tried], **entry}
    return changed(MINIMAL, {"spec.models": [model], "spec.gpu": {"product": "NVIDIA-A100-SXM4-80GB"}})


@pytest.mark.parametrize("source", CONVERTED)
def test_every_route_is_taken_and_no_other(kubectl_shared: Kubectl, source: str) -> None:
    routes = SOURCE_FORMATS[source].converters
    for target in TARGETS:
        body = of_format(source, target)
        if target in routes:
            assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)
        else:
            message = refusal(kubectl_shared, body)
            *others, last = routes
            known = f"{', '.join(others)} or {last}" if others else last
            assert f"a model of format {source} can be converted only to {known}:" in message


@pytest.mark.parametrize("target", TARGETS)
def test_every_accelerator_goes_with_its_formats_alone(kubectl_shared: Kubectl, target: str) -> None:
    source = next(name for name, found in SOURCE_FORMATS.items() if target in found.converters)
    for accelerator in ("none", "cuda", "trt", "amp"):
        body = of_format(source, target, accelerator)
        if accelerator in FORMATS[target].accelerators:
            assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)
        else:
            assert f"format {target} does not support this accelerator: set none" in refusal(kubectl_shared, body)


@pytest.mark.parametrize("backend", PARAMETERS)
def test_every_parameter_is_taken_where_its_backend_serves(kubectl_shared: Kubectl, backend: str) -> None:
    given = {f"{MODEL}.config": {"parameters": dict.fromkeys(PARAMETERS[backend], "1")}}
    for target in (name for name, form in FORMATS.items() if form.backend == backend):
        source = next(name for name, found in SOURCE_FORMATS.items() if target in found.converters)
        body = changed(OF_ENSEMBLES.get(target) or of_format(source, target), given)
        assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("candidates", [..., []], ids=["left out", "empty"])
def test_candidates_may_be_left_out_and_parameters_are_those_of_backends_that_may_serve(
    kubectl_shared: Kubectl, candidates: Any
) -> None:
    given = {CANDIDATES: candidates, f"{MODEL}.config": {"parameters": {"intra_op_thread_count": "2"}}}
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=changed(MINIMAL, given))


def test_the_smallest_object_is_taken(kubectl_shared: Kubectl) -> None:
    spec = {"source": {"uri": "pvc://models/ocr"}, "models": [{"name": "ocr", "path": "ocr.onnx"}]}
    body = {**MINIMAL, "spec": spec}
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("form", ["", *DECLARING])
def test_the_batch_sizes_of_a_graph_may_be_anything_until_the_graph_is_read(kubectl_shared: Kubectl, form: str) -> None:
    batching = {"dynamicBatching": {"preferredBatchSizes": [64]}}
    model = {"name": "m", "path": "model.bin", "config": batching, **({"format": form} if form else {})}
    spec = {
        "source": {"uri": "pvc://models"},
        "models": [model],
        "performance": {"offline": {"batchSizes": [1, 4096]}},
    }
    body = {**MINIMAL, "spec": spec}
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("form", DECLARING)
def test_a_graph_needs_no_dataloader(kubectl_shared: Kubectl, form: str) -> None:
    model = {"name": "m", "format": form, "path": "model.bin"}
    body = changed(MINIMAL, {"spec.models": [model], "spec.dataloader": ...})
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


FOLDER = {"name": "ocr", "format": "triton-repository", "path": "ocr"}
REPOSITORY_SPEC = {"source": {"uri": "pvc://models"}, "models": [FOLDER]}


@pytest.mark.parametrize("fields", [{"entrypoint": "model.py"}, {"arguments": {"a": "b"}}], ids=["code", "arguments"])
def test_a_model_of_a_repository_is_a_folder(kubectl_shared: Kubectl, fields: dict[str, Any]) -> None:
    spec = {**REPOSITORY_SPEC, "models": [FOLDER | fields]}
    message = refusal(kubectl_shared, {**MINIMAL, "spec": spec})
    assert "set path, and remove entrypoint and arguments" in message


def test_the_status_keeps_what_a_repository_says(kubectl: Kubectl) -> None:
    kubectl("create", "--validate=strict", "-f", "-", body={**MINIMAL, "spec": REPOSITORY_SPEC})
    told = FromRepository.of(repository("repository/ocr.onnx"))  # type: ignore[arg-type]  # JSON
    said = told.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    resolved = {"models": [{"name": "ocr", "format": "onnx", "maxBatchSize": 8, "repository": said}]}
    patch = json.dumps({"status": {"resolved": resolved}})
    kubectl("patch", "td", "digits", "--subresource=status", "--type=merge", "-p", patch)
    assert kubectl.get("td", "digits")["status"]["resolved"] == resolved


ALLOWED = "must be an allowed argument of tritonserver: remove or correct it. Allowed are --http-thread-count=1 to 999;"
ARGUMENTS: dict[str, str] = {
    "a file": "--log-file=/dev/shm/x",
    "a directory of backends": "--backend-directory=/models",
    "a directory of backends, as a setting": "--backend-config=backend-directory=models",
    "libraries of plugins": "--backend-config=tensorrt,plugins=a.so",
    "a setting of another backend": "--backend-config=python,shm-default-byte-size=1",
    "a path in a backend's setting": "--backend-config=onnxruntime,default-max-batch-size=../models",
    "a blank in a backend's setting": "--backend-config=onnxruntime,default-max-batch-size=a b",
    "a file of tables": "--backend-config=hps,ps=ps.json",
    "a port": "--metrics-port=8000",
    "another repository": "--model-store=/tmp",
    "control of models": "--model-control-mode=explicit",
    "open interfaces": "--http-restricted-api=health:a=b",
    "traces to a URL": "--trace-config=opentelemetry,url=http://evil.example",
    "traces to a file": "--trace-config=triton,file=/tmp/x",
    "a cache of answers": "--cache-config=local,size=1048576",
    "a second flag in a value": "--http-thread-count=8 --log-file=/tmp/x",
    "a second line": "--http-thread-count=8\n--log-file=/tmp/x",
    "no thread": "--http-thread-count=0",
    "too many threads": "--http-thread-count=1000",
    "another word": "--rate-limit=on",
    "a pool of a petabyte": "--pinned-memory-pool-byte-size=1125899906842624000",
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_arguments_that_open_something_are_refused(kubectl_shared: Kubectl, attack: Attack, what: str) -> None:
    message = refusal(kubectl_shared, changed(MINIMAL, {"spec.serving": {"arguments": [ARGUMENTS[what]]}}))
    attack("a spec", f"an argument of tritonserver: {what}", message.rpartition("Invalid value")[2][:100])
    assert "spec.serving.arguments[0]" in message
    assert ALLOWED in message


PEERS: dict[str, tuple[list[Any], str]] = {
    "nobody named, which is everybody": ([], "should have at least 1 items"),
    "an empty peer": ([{}], "a peer must have an ipBlock, or a namespaceSelector, a podSelector or both"),
    "a block and pods": ([{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}], "a peer must have an ipBlock, or"),
    "no block": ([{"ipBlock": {"cidr": "10.0.0.0/33"}}], "cidr must be a block of addresses"),
    "In without values": (
        [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}],
        "operator In and NotIn take values",
    ),
    "Exists with values": (
        [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}}],
        "operator In and NotIn take values",
    ),
    "a key that is none": ([{"podSelector": {"matchLabels": {"a b": "1"}}}], "keys must be names as Kubernetes takes"),
}


@pytest.mark.parametrize("what", PEERS)
def test_peers_that_no_policy_could_have_are_refused(kubectl_shared: Kubectl, what: str) -> None:
    peers, words = PEERS[what]
    message = refusal(kubectl_shared, changed(MINIMAL, {"spec.serving": {"networkPolicy": {"from": peers}}}))
    assert words in message


@pytest.mark.parametrize("which", [0, 1])
def test_every_allowed_argument_is_taken_at_its_bounds(kubectl_shared: Kubectl, which: int) -> None:
    arguments = [f"{name}={bounds[which]}" for name, bounds in TAKEN.items()]
    body = changed(MINIMAL, {"spec.serving": {"arguments": arguments}})
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("pod", ["pod", "conversion.pod", "serving.pod"])
def test_labels_and_annotations_that_other_tools_read_are_taken(kubectl_shared: Kubectl, pod: str) -> None:
    given = {
        f"spec.{pod}.labels": {
            "team": "vision",
            "app.kubernetes.io/version": "1.2",
            "kueue.x-k8s.io/queue-name": "gpus",
            "sidecar.istio.io/inject": "false",
            "tags.datadoghq.com/env": "prod",
        },
        f"spec.{pod}.annotations": {
            "kubectl.kubernetes.io/default-container": "tritonserver",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            "prometheus.io/scrape": "true",
            "argocd.argoproj.io/tracking-id": "models:triton-operator.dev/TritonDeployment:vision/digits",
        },
    }
    body = changed(MINIMAL, given)
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


def test_an_engine_may_be_listed_in_an_object_for_the_cpu(kubectl_shared: Kubectl) -> None:
    """It is skipped there: one file serves clusters with and without GPUs."""
    body = changed(of_format("pyt", "trt"), {"spec.gpu": ...})
    assert "digits" in kubectl_shared("create", "--dry-run=server", "-f", "-", body=body)


def test_unknown_fields_are_named(kubectl: Kubectl) -> None:
    body = changed(FULL, {"spec.serving.replica": 2, f"{CANDIDATES}.0.acelerator": "trt"})
    with pytest.raises(KubectlError) as refused:
        kubectl("create", "--validate=strict", "-f", "-", body=body)
    assert 'unknown field "spec.serving.replica"' in str(refused.value)
    assert 'unknown field "spec.models[0].candidates[0].acelerator"' in str(refused.value)


def test_every_field_is_explained(kubectl: Kubectl) -> None:
    text = kubectl("explain", "td.spec.performance.measurement.interval")
    assert "Default: 5s" in text
    assert "DESCRIPTION" in kubectl("explain", "td.status.performance.online.p99Latency")
    for field, words in (
        ("format", "tf-keras"),
        ("path", "or directory: tf-savedmodel"),
        ("candidates.accelerator", "automatic mixed precision"),
        ("onnx.optimized", "Default: false"),
        ("tensorrt.workspace", "Default: 1Gi"),
        ("tensorrt.builderOptimizationLevel", "Default: 3"),
    ):
        assert words in " ".join(kubectl("explain", f"td.spec.models.{field}").split())


def test_columns(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    assert kubectl("get", "td").splitlines()[0].split() == ["NAME", *columns()]
    assert kubectl("get", "td", "-o", "wide").splitlines()[0].split() == ["NAME", *columns(wide=True)]
    assert "digits" in kubectl("get", "triton")
