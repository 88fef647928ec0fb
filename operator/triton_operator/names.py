"""Every name, label and hash. Pure.

A result's key is a hash of exactly what can change the result, so the same work is never done twice. A Job's name holds
a hash of the key and of its whole template: a Job with more memory is another Job, and so a retry.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

from triton_converters.contract.document import given

GROUP = "triton-operator.dev"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "TritonDeployment"
MANAGED_BY = "triton-operator"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY_SELECTOR = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
"""Of every child, and all that is watched."""
DEPLOYMENT_LABEL = f"{GROUP}/deployment"
STAGE_LABEL = f"{GROUP}/stage"
KEY_LABEL = f"{GROUP}/key"
CANDIDATE_LABEL = f"{GROUP}/candidate"
REVISION_LABEL = f"{GROUP}/revision"
TEMPLATE_ANNOTATION = f"{GROUP}/pod-template"
"""Of a revision's Deployment: its pod template as it was made."""
GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""Of nodes: NVIDIA's GPU feature discovery sets it."""


def digest(value: Any, length: int) -> str:
    """Hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def result_key(stage: str, *parts: Any) -> str:
    """16 digits that name a stage's result on the claim; ``parts`` are all that can change it."""
    return digest([stage, *parts], 16)


def job(deployment: str, stage: str, template: Any) -> str:
    """At most 40 + 11 + 11 characters: 62 of the 63 that a Job may have."""
    return f"{deployment}-{stage}-{digest(template, 10)}"


def claim(deployment: str) -> str:
    """The PersistentVolumeClaim the operator makes."""
    return f"{deployment}-repository"


def results(deployment: str) -> str:
    """The ConfigMap that records what Jobs answered."""
    return f"{deployment}-results"


def preview(deployment: str) -> str:
    """The Service of the revision that is about to serve."""
    return f"{deployment}-preview"


def network_policy(deployment: str) -> str:
    """The NetworkPolicy of the Jobs' pods."""
    return f"{deployment}-jobs"


def server(deployment: str, revision_key: str, serving: Any) -> str:
    """The Deployment of a revision as the spec wants it served."""
    return f"{deployment}-{digest([revision_key, serving], 10)}"


def combination(candidates: Sequence[str]) -> str:
    """The members' names, joined by dots; at most 63 characters, since it is a label's value."""
    name = ".".join(candidates)
    return name if len(name) <= 63 else f"{name[:52]}.{digest(name, 10)}"


def tuned(candidate: str) -> str:
    """The candidate with the configuration that a search found: at most 36 of a label's 63 characters."""
    return f"{candidate}.tuned"


def labels(deployment: str, component: str) -> dict[str, str]:
    """Labels of every child."""
    return {
        "app.kubernetes.io/name": "tritonserver" if component == "server" else f"triton-{component}",
        "app.kubernetes.io/instance": deployment,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": MANAGED_BY,
        MANAGED_BY_LABEL: MANAGED_BY,
        DEPLOYMENT_LABEL: deployment,
    }


def _plain(value: Any) -> Any:
    """Dataclasses and pydantic models by field, without those at their default.

    A default and the same value written out are one; and a field that a newer operator adds changes no key and no name
    while nobody sets it, so that an upgrade neither converts nor measures again.
    """
    if is_dataclass(value):
        return given(value)
    return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
