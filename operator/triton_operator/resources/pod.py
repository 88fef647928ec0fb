"""The spec of every pod: security context, placement, and the limits of its containers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from triton_operator import names
from triton_operator.api.pod import CommonPod, Pod
from triton_operator.api.quantity import amount, total
from triton_operator.api.scheduling import TopologySpread
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.observed.pod import SERVER
from triton_operator.resources.claim import shared_by_nodes
from triton_operator.settings import DefaultResources, Settings

CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""Together with the pod's own this meets Kubernetes' Pod Security Standard `restricted`."""

NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
"""NVIDIA's images set it to `all`, by which a container without a GPU limit would see all GPUs of its node if NVIDIA's
runtime is the node's default."""


TF32_OFF = {"name": "NVIDIA_TF32_OVERRIDE", "value": "0"}
"""Keeps NVIDIA's libraries from rounding the factors of fp32 products to 10 bits, whatever a program asks for: such
answers lie outside the tolerances of fp32. ONNX Runtime, cuDNN and TensorFlow do so by default."""


GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Tolerates the taint by which clusters keep other pods off GPU nodes; NVIDIA's device plugin tolerates the same."""


@dataclass(frozen=True)
class PodContainers:
    """The containers of a pod, and their volumes."""

    first: Sequence[Body]
    """The init containers, in the order in which they start."""
    main: Body
    """The container that is the pod's own: a Job's publishes the result."""
    volumes: Sequence[Body]


@dataclass(frozen=True)
class PodPurpose:
    """What a pod is for, and where it may run."""

    component: str
    settings: Pod
    gpu: bool
    """Whether the pod needs a node with the spec's GPU product."""
    runs_user_code: bool
    others: Body
    """Fields of its spec that only such pods have."""
    has_claim: bool = True
    """Whether the pod has the repository claim, and so runs where the claim's volume is."""


def pod_spec(context: Context, purpose: PodPurpose, parts: PodContainers) -> Body:
    """A pod's spec."""
    pod, gpu = purpose.settings, purpose.gpu
    installed = context.settings.architecture
    selector = ({names.ARCHITECTURE_LABEL: installed} if installed else {}) | pod.node_selector
    needs_product = gpu or (purpose.has_claim and follows_servers(context))
    if needs_product and context.spec.gpu is not None and context.spec.gpu.product:
        selector[names.GPU_PRODUCT_LABEL] = context.spec.gpu.product
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _security(context.spec.pod),
        "nodeSelector": selector,
        "tolerations": _tolerations(context, pod, gpu),
        "affinity": _affinity(context, pod, has_claim=purpose.has_claim),
        "topologySpreadConstraints": [
            _spread(context, each, purpose.component) for each in pod.topology_spread_constraints
        ],
        "priorityClassName": pod.priority_class_name,
        "runtimeClassName": pod.runtime_class_name,
        "imagePullSecrets": [{"name": secret.name} for secret in pod.image_pull_secrets],
        **(isolation(context.settings) if purpose.runs_user_code else {}),
        **purpose.others,
        "containers": [_limited(context, parts.main, parts.volumes)],
        "volumes": [*parts.volumes],
        "initContainers": [_limited(context, each, parts.volumes) for each in parts.first],
    }
    return {field: value for field, value in spec.items() if value not in ("", [], {})}


def user_code_settings(context: Context, settings: Pod) -> Pod:
    """Return a pod's settings as they are where the user's Python code runs.

    What is harmless on a server, such as a volume of an injected proxy's, is not where any code may run. So an
    installation that restricts annotations lets a spec set none there.
    """
    return settings.model_copy(update={"annotations": {}}) if context.settings.allowed_annotations else settings


def isolation(settings: Settings) -> dict[str, Any]:
    """What the installation demands of a pod that runs the user's Python code, whatever the spec says."""
    runtime, host_users = settings.user_code_runtime_class, settings.user_code_host_users
    demanded: dict[str, Any] = {"runtimeClassName": runtime} if runtime else {}
    return demanded if host_users is None else demanded | {"hostUsers": host_users}


def follows_servers(context: Context) -> bool:
    """Whether every pod of the object needs a node on which its servers with a GPU may run.

    The first pod that uses a claim decides in which zone, or on which node, its volume is made. It is the source Job's,
    and the servers could never run elsewhere. Of a user's claim, the user has decided.
    """
    return context.spec.gpu_count > 0 and shared_by_nodes(context) is False


def _tolerations(context: Context, pod: Pod, gpu: bool) -> list[dict[str, Any]]:
    """The user's tolerations, and ``GPU_TAINT`` for a pod that uses a GPU or follows the claim to such a node.

    A claim that is attached to one node takes all the object's pods to the servers' node.
    """
    given = [each.body() for each in pod.tolerations]
    follows = servers_have_gpu(context) and not shared_by_nodes(context)
    if not (follows or _has_gpu(context, resources(context, pod, gpu))):
        return given
    tolerated = any(
        each.operator == "Exists" and each.key in ("", GPU_TAINT["key"]) and each.effect in ("", GPU_TAINT["effect"])
        for each in pod.tolerations
    )
    return given if tolerated else [*given, dict(GPU_TAINT)]


def variables(pod: Pod) -> list[dict[str, str]]:
    """The user's environment variables. Kubernetes would replace $(NAME) in a value, but not in $$(NAME)."""
    return [{"name": each.name, "value": each.value.replace("$", "$$")} for each in pod.env]


def pod_metadata(context: Context, pod: Pod, component: str, own: Body) -> Body:
    """Labels and annotations of a pod's template, and of its Job. The user's never replace ``own``, the operator's."""
    labels = {**_free(pod.labels), **names.labels(context.name, component), **own["labels"]}
    annotations = {**_free(pod.annotations), **own.get("annotations", {})}
    return {"labels": labels} | ({"annotations": annotations} if annotations else {})


def resources(context: Context, pod: Pod, gpu: bool) -> dict[str, Any]:
    """Requests and limits of the main container, including the GPU."""
    limits = dict(pod.resources.limits)
    if gpu and context.spec.gpu is not None and context.spec.gpu_count > 0:
        limits[context.spec.gpu.resource_name] = str(context.spec.gpu_count)
    given = {"requests": dict(pod.resources.requests), "limits": limits}
    return {field: value for field, value in given.items() if value}


def _limited(context: Context, container: Body, volumes: Sequence[Body]) -> Body:
    """The container with what every one has, whatever it is for: limits, and no GPU unless one is among them."""
    settings = context.settings
    defaults = settings.server_resources if container["name"] == SERVER else settings.job_resources
    device = TF32_OFF if _has_gpu(context, container["resources"]) else NO_GPU
    limited = _with_defaults(container, volumes, defaults)
    return {**container, "env": [*container["env"], device], "resources": limited}


def _with_defaults(container: Body, volumes: Sequence[Body], defaults: DefaultResources) -> dict[str, Any]:
    """The container's resources, and the installation's of those of which it sets neither request nor limit.

    A default limit is of what a container uses besides the pod's emptyDirs, so their sizes are added: those in memory
    to the memory of a container that mounts them, all others to the ephemeral storage, which the kubelet limits for the
    whole pod. A request that is larger than the limit raises it.
    """
    given = container["resources"]
    requests, limits = dict(given.get("requests", {})), dict(given.get("limits", {}))
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    rooms = {
        "memory": [each for each in _empty_directories(volumes, "Memory") if each["name"] in mounted],
        "ephemeral-storage": _empty_directories(volumes, ""),
    }
    for resource, limit in defaults.limits.items():
        if resource not in limits:
            sizes = [each["emptyDir"]["sizeLimit"] for each in rooms[resource]]
            limits[resource] = max(total([limit, *sizes]), requests.get(resource, "0"), key=_bytes)
    for resource, request in defaults.requests.items():
        # Kubernetes takes the spec's limit for a missing request, and its author may rely on that.
        if resource not in given.get("limits", {}):
            requests.setdefault(resource, request)
    return {name: value for name, value in (("requests", requests), ("limits", limits)) if value}


def _empty_directories(volumes: Sequence[Body], medium: str) -> list[Body]:
    return [each for each in volumes if "emptyDir" in each and each["emptyDir"].get("medium", "") == medium]


def _bytes(quantity: str) -> Decimal:
    return amount(quantity) or Decimal(0)


def servers_have_gpu(context: Context) -> bool:
    """Whether the servers have a GPU: the spec's, or one that is written into their limits."""
    return _has_gpu(context, resources(context, context.server_pod, gpu=True))


def _has_gpu(context: Context, given: Mapping[str, Any]) -> bool:
    own = context.spec.gpu.resource_name if context.spec.gpu is not None else ""
    limits = given.get("limits", {})
    return any(amount(limit) for name, limit in limits.items() if name == own or name.startswith("nvidia.com/"))


def _free(given: Mapping[str, str]) -> dict[str, str]:
    """The user's labels or annotations. An object that is older than the CRD's rule may have reserved ones."""
    return {key: value for key, value in given.items() if not names.is_reserved(key)}


def _security(pod: CommonPod) -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": pod.run_as_user,
        "runAsGroup": pod.run_as_user,
        "fsGroup": pod.fs_group or pod.run_as_user,
        # A repository can hold many files, so they are not all changed at every start.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _spread(context: Context, spread: TopologySpread, component: str) -> dict[str, Any]:
    """The constraint on the object's pods of a component; a server counts those of its own revision alone."""
    selector = {names.TRITON_DEPLOYMENT_LABEL: context.name, names.COMPONENT_LABEL: component}
    return {
        "topologyKey": spread.topology_key,
        "maxSkew": spread.max_skew,
        "whenUnsatisfiable": spread.when_unsatisfiable,
        "labelSelector": {"matchLabels": selector},
        # In every Job's template too, whose hash is the Job's name: another label here would run them all again.
        "matchLabelKeys": [names.SERVER_LABEL],
    }


def _affinity(context: Context, pod: Pod, *, has_claim: bool) -> dict[str, Any]:
    """The user's affinity and the claim's, because a ReadWriteOnce volume is attached to one node.

    The claim requires affinity to the object's own pods; the first pod matches itself and is scheduled. For a user's
    claim the access mode is not known, so the affinity is only preferred.
    """
    affinity = pod.affinity.body() if pod.affinity is not None else {}
    shared = shared_by_nodes(context)
    if shared or not has_claim:
        return affinity
    term: dict[str, Any] = {
        "labelSelector": {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: context.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    own = dict(affinity.get("podAffinity", {}))
    if shared is False:
        field = "requiredDuringSchedulingIgnoredDuringExecution"
    else:
        field = "preferredDuringSchedulingIgnoredDuringExecution"
        term = {"weight": 100, "podAffinityTerm": term}
    own[field] = [*own.get(field, []), term]
    return affinity | {"podAffinity": own}
