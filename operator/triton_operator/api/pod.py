"""The settings of pods: GPU, resources, and where they run."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from triton_operator import names
from triton_operator.api.quantity import Quantity
from triton_operator.api.schema import KEYS, ApiType, DnsName, Image, LabelValue, cel_list, rules

FREE_KEYS = (
    f"!self.exists(k, k in {cel_list(names.RESERVED_KEYS)}"
    f" || {cel_list(names.RESERVED_PREFIXES)}.exists(p, k.startsWith(p)))",
    "keys that are reserved for the operator or Kubernetes must not be set: remove or rename them. Reserved keys"
    f" are {', '.join(names.RESERVED_KEYS)}, and all that begin with {', '.join(names.RESERVED_PREFIXES)}",
)
"""The CEL rule that lets a user set no label or annotation by which a pod is taken for another."""
LONGEST_AFFINITY_BYTES = 16 * 1024
"""An affinity stands in each Job and twice in each Deployment; one that names 200 nodes has about half of this."""

NodeLabels = Annotated[dict[str, LabelValue], Field(max_length=32, json_schema_extra=rules(KEYS))]
PodLabels = Annotated[dict[str, LabelValue], Field(max_length=32, json_schema_extra=rules(KEYS, FREE_KEYS))]
Annotations = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=1024)]],
    Field(max_length=32, json_schema_extra=rules(KEYS, FREE_KEYS)),
]
Amounts = Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(KEYS))]


class Gpu(ApiType):
    """The GPU that conversion, profiling and serving use."""

    product: Annotated[
        str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$")
    ] = ""
    """Value that the node label `nvidia.com/gpu.product` must have. Required if `count` is above 0 and a candidate has
    format `trt` or `tf-trt` or accelerator `trt`, whose engines are built for one GPU product. Default: any product."""
    resource_name: Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9.-]+/[a-zA-Z0-9._-]+$")] = (
        "nvidia.com/gpu"
    )
    """Extended resource that pods request. Default: nvidia.com/gpu."""
    count: Annotated[int, Field(ge=0, le=1024)] = 1
    """Number of GPUs that a pod requests. If 0, everything runs on the CPU. Default: 1."""


class Toleration(ApiType):
    """A Kubernetes toleration."""

    key: Annotated[str, StringConstraints(max_length=317)] = ""
    """Key of the taint. Default: all keys; `operator` must then be `Exists`."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """How the taint is matched: `Exists` by its key only, `Equal` by key and value. Default: Equal."""
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    """Value of the taint. Default: the empty value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Effect of the taint. Default: every effect."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """How long the pod stays on a tainted node, in seconds. It applies to effect NoExecute only. Default: forever."""


class Resources(ApiType):
    """The resource requests and limits of a container."""

    requests: Amounts = Field(default_factory=dict)
    """Requests by resource name. Default: of memory and ephemeral storage, what the operator's Helm values
    `jobs.resources` and `servers.resources` say, unless a limit is set here; of others, none."""
    limits: Amounts = Field(default_factory=dict)
    """Limits by resource name. Default: of memory and ephemeral storage, what the operator's Helm values
    `jobs.resources` and `servers.resources` say, together with the sizes of the pod's own volumes, or the request if
    that is larger; of others, none."""


class LocalReference(ApiType):
    """A reference to an object in the same namespace."""

    name: DnsName
    """Name of the object."""


class Pod(ApiType):
    """Settings of a pod that the operator creates. Volumes and the security context are the operator's alone."""

    image: Image = ""
    """Image of the main container. Default: the image in the operator's Helm values, `converter.image`,
    `converter.tensorflowImage` or `server.image`."""
    resources: Resources = Field(default_factory=Resources)
    """Resource requests and limits of the main container. The operator adds the GPU limit from `spec.gpu`."""
    node_selector: NodeLabels = Field(default_factory=dict)
    """Labels that a node must have to run the pod. Default: none."""
    tolerations: Annotated[list[Toleration], Field(max_length=16)] = Field(default_factory=list)
    """Taints that the pod tolerates. Default: none."""
    affinity: (
        Annotated[dict[str, Any], Field(max_length=3, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
        | None
    ) = None
    """Affinity of the pod, as in a pod's spec, at most 16 KiB as JSON. Default: none."""
    priority_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the pod's PriorityClass. Default: none."""
    runtime_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the pod's RuntimeClass. Default: none."""
    image_pull_secrets: Annotated[list[LocalReference], Field(max_length=8)] = Field(default_factory=list)
    """Secrets for pulling the images, of type kubernetes.io/dockerconfigjson, in the namespace of the object. Default:
    none."""
    labels: PodLabels = Field(default_factory=dict)
    """Labels to add to the pod. Keys that the operator or Kubernetes sets are refused, such as `triton-operator.dev/*`,
    `app.kubernetes.io/name` and `pod-template-hash`. Default: none."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations to add to the pod. The same keys are refused as in `labels`. Default: none."""

    @field_validator("affinity")
    @classmethod
    def _check_affinity(cls, affinity: dict[str, Any] | None) -> dict[str, Any] | None:
        """Refuse what the operator cannot add its own terms to; the API server checks the rest with the pod."""
        if affinity is None:
            return None
        if (size := len(json.dumps(affinity))) > LONGEST_AFFINITY_BYTES:
            raise ValueError(f"the affinity has {size} bytes as JSON, more than {LONGEST_AFFINITY_BYTES}: shorten it")
        between = affinity.get("podAffinity", {})
        if not isinstance(between, dict) or not all(isinstance(terms, list) for terms in between.values()):
            raise ValueError("podAffinity must hold lists of terms, as in a pod's spec: correct it")
        return affinity
