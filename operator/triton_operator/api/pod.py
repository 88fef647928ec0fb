"""What may be set on pods: GPU, resources, where they run."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from triton_operator.api.schema import ApiType, DnsName, Image, Labels, Quantity


class Gpu(ApiType):
    """The GPU that conversion, profiling and serving share."""

    product: Annotated[
        str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$")
    ] = ""
    """Value of the node label nvidia.com/gpu.product. Default: any."""
    resource_name: Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9.-]+/[a-zA-Z0-9._-]+$")] = (
        "nvidia.com/gpu"
    )
    """Extended resource to ask for."""
    count: Annotated[int, Field(ge=0, le=1024)] = 1
    """GPUs of a pod; 0: CPU. Default 1."""


class Toleration(ApiType):
    """A Kubernetes toleration."""

    key: Annotated[str, StringConstraints(max_length=317)] = ""
    """Taint key."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """How key and value are compared."""
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    """Taint value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Taint effect; empty: all."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """Only with NoExecute."""


class Resources(ApiType):
    """A container's requests and limits."""

    requests: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """By resource name."""
    limits: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """By resource name."""


class LocalReference(ApiType):
    """A name in the object's own namespace."""

    name: DnsName
    """Of the object referred to."""


class Pod(ApiType):
    """What may be set on a pod made for this object. No volumes and no security context: those are the operator's."""

    image: Image = ""
    """Default: the operator's settings."""
    resources: Resources = Field(default_factory=Resources)
    """Of the main container, in addition to the GPU limit."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels the pod needs."""
    tolerations: Annotated[list[Toleration], Field(max_length=16)] = Field(default_factory=list)
    """Taints the pod bears."""
    affinity: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    """As in a pod's spec."""
    priority_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """PriorityClass of the pod."""
    runtime_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """RuntimeClass of the pod."""
    image_pull_secrets: Annotated[list[LocalReference], Field(max_length=8)] = Field(default_factory=list)
    """Secrets of type kubernetes.io/dockerconfigjson."""
    labels: Labels = Field(default_factory=dict)
    """Added to the pod's own."""
    annotations: Labels = Field(default_factory=dict)
    """Added to the pod's own."""
