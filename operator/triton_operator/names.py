"""Every name, label and hash. Pure.

A result's key is a hash of exactly what can change the result, so the same work is never done twice. It is made from
the Job's whole request, so that no field of a request can be forgotten. A Job's name holds a hash of the key and of its
whole template: a Job with more memory is another Job, and so a retry.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

from triton_converters.contract.document import Document, given

D = TypeVar("D", bound=Document)
Body = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""

GROUP = "triton-operator.dev"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "TritonDeployment"
KEDA_API_VERSION = "keda.sh/v1alpha1"
SCALED_OBJECT = "ScaledObject"
GATEWAY_API_GROUP = "gateway.networking.k8s.io"
GATEWAY_API_VERSION = f"{GATEWAY_API_GROUP}/v1"
HTTP_ROUTE = "HTTPRoute"
POLICY_API_VERSION = "policy/v1"
DISRUPTION_BUDGET = "PodDisruptionBudget"
MANAGED_BY = "triton-operator"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY_SELECTOR = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
"""The selector of every child; nothing else is watched."""
TRITON_DEPLOYMENT_LABEL = f"{GROUP}/deployment"
COMPONENT_LABEL = "app.kubernetes.io/component"
STAGE_LABEL = f"{GROUP}/stage"
KEY_LABEL = f"{GROUP}/key"
"""On a Job: the key of its result. On a server and its pods: the key of the revision."""
CANDIDATE_LABEL = f"{GROUP}/candidate"
SERVER_LABEL = f"{GROUP}/server"
"""On a server and its pods: the name of the Deployment, by which its pods are selected."""
TEMPLATE_ANNOTATION = f"{GROUP}/pod-template"
"""On a revision's Deployment: the pod template that it was made with."""
MAKES_WAY_ANNOTATION = f"{GROUP}/makes-way-for"
"""On the active revision's Deployment: the name of the Deployment that needs the GPUs of its other pods."""
MAKES_WAY_SINCE_ANNOTATION = f"{GROUP}/makes-way-since"
"""On the active revision's Deployment: when its other pods made way, as an RFC 3339 time."""
MAKES_WAY_PODS_ANNOTATION = f"{GROUP}/makes-way-pods"
"""On the active revision's Deployment: how many of its pods made way."""
WAITS_ANNOTATION = f"{GROUP}/waits-since"
"""On a target's Deployment: since when its pods are waited for, if that is not since it was made."""
WAS_READY_ANNOTATION = f"{GROUP}/was-ready"
"""On a target's Deployment: all its pods were ready at some time since it last had none."""
LOGGED_CONTAINER = "kubectl.kubernetes.io/default-container"
"""On a pod: the container whose log `kubectl logs` shows."""
REPOSITORY = "repository"
"""Name of the volume of the repository claim, in every pod."""
INCOMING = "incoming"
"""Name of the volume that a container `run` writes to."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""On a Job: the LocalQueue in which Kueue has it wait. It is the user's, or Kueue's if the namespace has a default."""
RETRY_ANNOTATION = f"{GROUP}/retry"
"""On a TritonDeployment: each new value asks for another try of what failed."""
UPDATE_IMAGES_ANNOTATION = f"{GROUP}/update-images"
"""On a TritonDeployment: each new value asks once for the images that the installation has then."""
REQUEST_ANNOTATION = f"{GROUP}/requestedAt"
"""On a TritonDeployment: each new value asks for a look at the source at once."""
RELEASE_ANNOTATION = f"{GROUP}/release"
"""On a retained claim: the uid of the TritonDeployment with which it may be deleted."""
DOWNLOADS_LABEL = f"{GROUP}/downloads"
"""On the pods that download a source. The policy that lets them out selects them by it."""
MEASURES_LABEL = f"{GROUP}/measures"
"""On Jobs that measure, whose figures another load on their node would change: `true`."""
ARCHITECTURE_LABEL = "kubernetes.io/arch"
"""The label of a node's processor, which its kubelet sets."""
GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""The label that NVIDIA's GPU feature discovery sets on nodes."""

RESERVED_PREFIXES = (
    f"{GROUP}/",
    "batch.kubernetes.io/",
    "apps.kubernetes.io/",
    "statefulset.kubernetes.io/",
    "kubernetes.io/config.",
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "container.apparmor.security.beta.kubernetes.io/",
)
"""How the keys of labels and annotations begin that a user may not give a pod, whatever comes after.

By such a key a Service, NetworkPolicy or controller takes a pod for its own, the kubelet takes it for a node's own pod,
or a container loses its seccomp or AppArmor profile.
"""
RESERVED_KEYS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    COMPONENT_LABEL,
    "app.kubernetes.io/part-of",
    MANAGED_BY_LABEL,
    "job-name",
    "controller-uid",
    "pod-template-hash",
    "pod-template-generation",
    "controller-revision-hash",
)
"""Further keys that a user may not give a pod. Every other key is free: tools of the cluster read them."""


FOREIGN_DOMAINS = ("kubernetes.io", "k8s.io", "x-k8s.io", "argoproj.io", "fluxcd.io", "helm.sh", "k14s.io", "cattle.io")
"""Domains of labels that tell Kubernetes what to do with an object, or a deployer which objects are its own."""
INERT_DOMAIN = "app.kubernetes.io"
"""The one of these domains whose labels are for people."""


RESERVED_VARIABLES = (
    *("HOME", "PATH", "ENV", "BASH_ENV", "IFS", "GCONV_PATH", "POD_UID"),
    *("GPU_PRODUCT", "TENSORRT_VERSION", "OMP_NUM_THREADS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "OMP_TOOL_LIBRARIES", "OCL_ICD_FILENAMES"),
)
"""Environment variables that a user may not set: the operator does, or a program is started or reaches out by them."""
RESERVED_VARIABLE_PREFIXES = (
    *("LD_", "GLIBC_", "OPENSSL_", "PYTHON", "TORCH_FORCE_", "NVIDIA_", "TRITON", "KUBERNETES_"),
    *("CUDA_INJECTION", "NVTX_INJECTION"),
)
"""How the names of such variables begin. By some of them a program loads a library or other code."""


def is_reserved(key: str) -> bool:
    """Whether the key of a label or annotation of a pod is the operator's or Kubernetes' to set."""
    return key in RESERVED_KEYS or key.startswith(RESERVED_PREFIXES)


def is_inherited(key: str) -> bool:
    """Whether a label or an annotation of a TritonDeployment may go to everything that the operator makes for it."""
    domain = key.rpartition("/")[0]
    is_foreign = any(domain == each or domain.endswith(f".{each}") for each in FOREIGN_DOMAINS)
    return not is_reserved(key) and (domain == INERT_DOMAIN or not is_foreign)


def is_reserved_variable(name: str) -> bool:
    """Whether an environment variable is not the user's to set."""
    return name in RESERVED_VARIABLES or name.startswith(RESERVED_VARIABLE_PREFIXES)


def digest(value: Any, length: int) -> str:
    """Hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_without_defaults)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def result_key(stage: str, request: Document, *others: Any, without: Collection[str] = ()) -> str:
    """The 16 digits that name a stage's result on the claim: a hash of the whole request and of ``others``.

    ``others``: what else can change the result. ``without``: fields of the request that cannot; the caller says why.
    The request's own ``key`` is left out. A deadline, memory and the node change whether a Job ends, not its result.
    """
    fields = {name: value for name, value in given(request).items() if name != "key" and name not in without}
    return digest([stage, fields, *others], 16)


def request_with_key(stage: str, request: D, *others: Any, without: Collection[str] = ()) -> D:
    """Return the request with the key of its result, which is made as `result_key` says."""
    return with_key(request, result_key(stage, request, *others, without=without))


def with_key(request: D, key: str) -> D:
    """Return the request with a key. Requests have no common class that has one."""
    changes: dict[str, Any] = {"key": key}
    return replace(request, **changes)


def job(owner_name: str, stage: str, template: Any) -> str:
    """Name of a Job. It has at most 40 + 11 + 11 = 62 characters; a Job may have 63."""
    return f"{owner_name}-{stage}-{digest(template, 10)}"


def claim(owner_name: str) -> str:
    """Name of the PersistentVolumeClaim that the operator makes."""
    return f"{owner_name}-repository"


def claim_owner(claim_name: str) -> str:
    """Name of the TritonDeployment for which the operator makes a claim of that name; empty: it makes none."""
    owner_name = claim_name.removesuffix("-repository")
    return owner_name if claim(owner_name) == claim_name else ""


def logged_container(labels: Mapping[str, str], annotations: Mapping[str, str] | None) -> str:
    """Name of the container of a Job's pod whose log tells how far it is."""
    return (annotations or {}).get(LOGGED_CONTAINER, labels[STAGE_LABEL])


def results(owner_name: str) -> str:
    """Name of the ConfigMap that records the Jobs' results."""
    return f"{owner_name}-results"


def preview(owner_name: str) -> str:
    """Name of the target revision's Service."""
    return f"{owner_name}-preview"


def network_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy for the Jobs' pods."""
    return f"{owner_name}-jobs"


def measure_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy that lets the measure Job's pods reach the server."""
    return f"{owner_name}-measure"


def snapshot_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy that lets the snapshot Jobs' pods reach the servers' metrics."""
    return f"{owner_name}-snapshot"


def sources_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy that lets pods download sources."""
    return f"{owner_name}-sources"


def servers_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy for the servers."""
    return f"{owner_name}-servers"


def traces_policy(owner_name: str) -> str:
    """Name of the NetworkPolicy that lets servers which send traces reach the collector."""
    return f"{owner_name}-traces"


def disruption_budget(owner_name: str) -> str:
    """Name of the PodDisruptionBudget of the active revision's servers."""
    return f"{owner_name}-servers"


def server(owner_name: str, revision_key: str, serving: Any) -> str:
    """Name of the Deployment that serves a revision as the spec asks."""
    return f"{owner_name}-{digest([revision_key, serving], 10)}"


def server_labels(server: str, revision_key: str) -> dict[str, str]:
    """The labels of a server and its pods that tell servers apart."""
    return {SERVER_LABEL: server, KEY_LABEL: revision_key}


def server_pods(owner_name: str, server: str) -> dict[str, str]:
    """The labels by which a server's pods are selected."""
    return {TRITON_DEPLOYMENT_LABEL: owner_name, SERVER_LABEL: server}


def selector(owner_name: str, server: str | None) -> str:
    """Label selector, as text, of a server's pods; None: a selector of no pod, because an empty one is an error."""
    return ",".join(f"{label}={value}" for label, value in server_pods(owner_name, server or "none").items())


def candidate(members: Sequence[str]) -> str:
    """Name of a candidate: its members' names joined by dots, at most 63 characters because it is a label's value."""
    name = ".".join(members)
    return name if len(name) <= 63 else f"{name[:52]}.{digest(name, 10)}"


def tuned_name(candidate: str) -> str:
    """Name of a candidate with the configuration that a search found: at most 36 of a label's 63 characters."""
    return f"{candidate}.tuned"


def repository(image: str) -> str:
    """An image's name without its tag and digest."""
    name, _, _ = image.partition("@")
    path, slash, last = name.rpartition("/")
    return path + slash + last.partition(":")[0]


def labels(owner_name: str, component: str) -> dict[str, str]:
    """Labels of every child."""
    return {
        "app.kubernetes.io/name": "tritonserver" if component == "server" else f"triton-{component}",
        "app.kubernetes.io/instance": owner_name,
        COMPONENT_LABEL: component,
        "app.kubernetes.io/part-of": MANAGED_BY,
        MANAGED_BY_LABEL: MANAGED_BY,
        TRITON_DEPLOYMENT_LABEL: owner_name,
    }


def _without_defaults(value: Any) -> Any:
    """Return a dataclass or pydantic model as a dict, without the fields that have their default.

    So a default and the same value written out give the same key. A field that a newer operator adds changes no key and
    no name while nobody sets it, so an upgrade neither converts nor measures again.
    """
    if is_dataclass(value):
        return given(value)
    return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
