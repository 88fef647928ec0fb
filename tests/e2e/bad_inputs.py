"""What a user can get wrong, and what the status has to say about it.

Each is applied as a new generation of an object that already serves. ``condition`` is the first that is not True; where
a new server does not start that is Ready: Available is of what serves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BadInput:
    """Changes to the spec of manifests/classifier.yaml and what they lead to."""

    name: str
    changes: Mapping[str, Any]
    condition: str
    reason: str
    message: str
    """Regular expression, found in the condition's message."""
    candidate: tuple[str, str] | None = None
    """Reason and message (a regular expression) of the one candidate, where it is the candidate that failed."""
    stalled: bool = field(default=True)
    """False: the cluster may still come round (a pod that waits), so the operator goes on trying."""


def source(**changes: Any) -> Mapping[str, Any]:
    return {"source": changes}


def model(**changes: Any) -> Mapping[str, Any]:
    return {"model": changes}


def faulty(fault: str) -> Mapping[str, Any]:
    """models/faulty.py with that fault."""
    return model(entrypoint="faulty.py", arguments={"fault": fault})


def faulty_loader(fault: str) -> Mapping[str, Any]:
    """models/faulty_loader.py with that fault; it yields no labels, so no threshold is set."""
    arguments = {"fault": fault, "kind": None, "labels": None}
    return {
        "dataloader": {"entrypoint": "faulty_loader.py", "arguments": arguments},
        "metrics": None,
        "accuracy": None,
    }


def checkpoint(file: str) -> Mapping[str, Any]:
    return model(arguments={"checkpoint": file})


def threshold(metric: str, minimum: float) -> Mapping[str, Any]:
    return {"accuracy": {"thresholds": [{"metric": metric, "min": minimum}]}}


def candidate(format: str, precision: str = "fp32") -> list[Mapping[str, str]]:
    return [{"name": f"{format}-{precision}", "format": format, "precision": precision}]


EXCLUSIVE = {
    "labels": {"e2e-exclusive": "true"},
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"e2e-exclusive": "true"}}}
            ]
        }
    },
}
"""No two such pods on one node."""
NO_IMAGE = "registry.invalid/nothing:1"

SOURCE = (
    BadInput(
        "missing-claim",
        source(uri="pvc://absent/suite"),
        "SourceResolved",
        "Unschedulable",
        'persistentvolumeclaim "absent" not found',
        stalled=False,
    ),
    BadInput(
        "missing-configmap",
        source(uri="configmap://absent"),
        "SourceResolved",
        "MountFailed",
        'configmap "absent" not found',
        stalled=False,
    ),
    BadInput("missing-path", source(uri="pvc://models/nowhere"), "SourceResolved", "SourceNotFound", "nowhere"),
    BadInput(
        "wrong-sha256",
        source(sha256="0" * 64),
        "SourceResolved",
        "DigestMismatch",
        "0{64}.*[0-9a-f]{64}|[0-9a-f]{64}.*0{64}",
    ),
)
USER_CODE = (
    BadInput(
        "missing-entrypoint",
        model(entrypoint="absent.py"),
        "Converted",
        "EntrypointInvalid",
        r"absent\.py.*classifier\.py",
    ),
    BadInput(
        "missing-function", model(entrypoint="metrics.py"), "Converted", "EntrypointInvalid", r"metrics\.py.*get_model"
    ),
    BadInput(
        "unknown-argument",
        model(arguments={"colour": "red"}),
        "Converted",
        "InvalidSpec",
        r"classifier\.py.*'colour'.*checkpoint",
    ),
    BadInput(
        "get-model-raises",
        faulty("raises"),
        "Converted",
        "UserCodeFailed",
        r"faulty\.py:\d+: RuntimeError: the vocabulary has 7 words, the checkpoint 9",
    ),
    BadInput(
        "prints-100-KB-and-raises",
        faulty("prints-and-raises"),
        "Converted",
        "UserCodeFailed",
        r"faulty\.py:\d+: RuntimeError: gave up loading",
    ),
    BadInput(
        "exits-with-0", faulty("sys-exit"), "Converted", "UserCodeFailed", r"faulty\.py:\d+.*ended the process with 0"
    ),
    BadInput("ends-the-process-with-0", faulty("os-exit"), "Converted", "ResultMissing", r"ended without a result"),
    BadInput(
        "sleeps-past-the-deadline",
        {**faulty("sleeps"), "conversion": {"activeDeadlineSeconds": 15}},
        "Converted",
        "DeadlineExceeded",
        "15 s|activeDeadlineSeconds",
    ),
    BadInput(
        "checkpoint-missing",
        checkpoint("absent.safetensors"),
        "Converted",
        "CheckpointInvalid",
        r"absent\.safetensors.*classifier\.safetensors",
    ),
    BadInput(
        "checkpoint-corrupt",
        checkpoint("corrupt.safetensors"),
        "Converted",
        "CheckpointInvalid",
        r"corrupt\.safetensors",
    ),
    BadInput("checkpoint-corrupt-pt", checkpoint("corrupt.pt"), "Converted", "CheckpointInvalid", r"corrupt\.pt"),
    BadInput("checkpoint-with-code", checkpoint("hostile.pt"), "Converted", "PickleRefused", r"hostile\.pt"),
    BadInput("training-mode", faulty("training"), "Converted", "EntrypointInvalid", r"eval\(\)"),
    BadInput(
        "forward-raises",
        faulty("forward-raises"),
        "Converted",
        "FrameworkFailed",
        "ValueError: no such feature: colour",
    ),
    BadInput("outputs-not-finite", faulty("not-a-number"), "Converted", "ReferenceNotFinite", "OUTPUT__0"),
    BadInput("outputs-constant", faulty("constant"), "Converted", "ReferenceConstant", "OUTPUT__0"),
    BadInput("outputs-random", faulty("random"), "Converted", "ReferenceNotReproducible", "OUTPUT__0"),
    BadInput(
        "loader-wrong-names",
        faulty_loader("wrong-names"),
        "Converted",
        "DataloaderInvalid",
        "features.*INPUT__0|INPUT__0.*features",
    ),
    BadInput("loader-wrong-shapes", faulty_loader("wrong-shapes"), "Converted", "FrameworkFailed", "4x7"),
    BadInput(
        "loader-wrong-count", faulty_loader("wrong-count"), "Converted", "DataloaderInvalid", "INPUT__0.*3.*4|4.*3"
    ),
    BadInput(
        "loader-without-batches", faulty_loader("nothing"), "Converted", "DataloaderInvalid", r"faulty_loader\.py"
    ),
    BadInput(
        "loader-raises",
        faulty_loader("raises"),
        "Converted",
        "UserCodeFailed",
        r"faulty_loader\.py:\d+: OSError: the feature store is closed",
    ),
    BadInput(
        "labels-missing",
        {"dataloader": {"arguments": {"labels": None}}},
        "Converted",
        "DataloaderInvalid",
        "accuracy|threshold",
    ),
)
CANDIDATE = (
    BadInput(
        "not-scriptable",
        {**faulty("none"), "model": {**faulty("none")["model"], "candidates": candidate("ts-script")}},
        "Converted",
        "AllCandidatesFailed",
        "ts-script-fp32",
        ("ConversionFailed", r"faulty\.py|Faulty"),
    ),
    BadInput(
        "metric-nobody-computes",
        threshold("f1", 0.5),
        "Verified",
        "AllCandidatesFailed",
        "onnx-fp32",
        ("MetricFailed", "f1.*accuracy"),
    ),
    BadInput(
        "metrics-raise",
        {"metrics": {"arguments": {"fault": "no column of that name"}}},
        "Verified",
        "AllCandidatesFailed",
        "onnx-fp32",
        ("MetricFailed", r"metrics\.py:\d+: KeyError: 'no column of that name'"),
    ),
    BadInput(
        "threshold-not-met",
        threshold("accuracy", 1.5),
        "Verified",
        "AllCandidatesFailed",
        "onnx-fp32",
        ("ThresholdNotMet", r"accuracy.*1(\.0+)?\b.*1\.5"),
    ),
    BadInput(
        "trace-froze-a-branch",
        model(entrypoint="branching.py", config={"maxBatchSize": 1}, candidates=candidate("ts-trace")),
        "Verified",
        "AllCandidatesFailed",
        "ts-trace-fp32",
        ("OutputsDiffer", "OUTPUT__0"),
    ),
    BadInput(
        "latency-out-of-reach",
        {"selection": {"constraints": {"p99Latency": "1us"}}},
        "Selected",
        "ConstraintsNotMet",
        r"onnx-fp32.*p99Latency|p99Latency.*onnx-fp32",
    ),
)
CLUSTER = (
    BadInput(
        "converter-image-cannot-be-pulled",
        {"conversion": {"image": NO_IMAGE}},
        "Converted",
        "ImagePullFailed",
        NO_IMAGE,
        stalled=False,
    ),
    BadInput(
        "server-image-cannot-be-pulled",
        {"serving": {"image": NO_IMAGE}},
        "Verified",
        "ImagePullFailed",
        NO_IMAGE,
        stalled=False,
    ),
    BadInput(
        "more-GPUs-than-there-are",
        {"gpu": {"count": 64}},
        "Converted",
        "Unschedulable",
        r"Insufficient nvidia\.com/gpu",
        stalled=False,
    ),
    BadInput(
        "killed-for-memory",
        {
            "conversion": {"pod": {"resources": {"limits": {"memory": "64Mi"}}}},
            "accuracy": {"maxSamples": 16},
        },
        "Converted",
        "OutOfMemory",
        r"64Mi.*spec\.conversion\.pod\.resources",
    ),
    BadInput(
        "data-claim-missing",
        {"dataset": {"uri": "pvc://absent/data"}},
        "Converted",
        "Unschedulable",
        'persistentvolumeclaim "absent" not found',
        stalled=False,
    ),
    BadInput(
        "second-replica-finds-no-node",
        {"serving": {"replicas": 2, "pod": EXCLUSIVE, "progressDeadlineSeconds": 20}},
        "Ready",
        "Unschedulable",
        "anti-affinity",
    ),
)

BAD_INPUTS = (*SOURCE, *USER_CODE, *CANDIDATE, *CLUSTER)
ALIKE = {
    *("missing-function", "unknown-argument", "get-model-raises", "exits-with-0", "checkpoint-missing"),
    *("checkpoint-corrupt-pt", "training-mode", "outputs-not-finite", "outputs-constant", "loader-wrong-names"),
    *("loader-wrong-shapes", "loader-wrong-count", "loader-without-batches", "labels-missing", "metrics-raise"),
    "data-claim-missing",
}
"""Names of those that come to the status the same way as others; tests of the stages make each of these failures."""
