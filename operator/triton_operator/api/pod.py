"""The settings of pods: GPU, resources, and where they run."""

from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from triton_operator import names
from triton_operator.api.quantity import Quantity
from triton_operator.api.scheduling import Affinity, Toleration, TopologySpread, one_a_key
from triton_operator.api.schema import KEYS, ApiType, DnsName, LabelValue, cel_list, list_map, rules

FREE_KEYS = (
    f"!self.exists(k, k in {cel_list(names.RESERVED_KEYS)}"
    f" || {cel_list(names.RESERVED_PREFIXES)}.exists(p, k.startsWith(p)))",
    "keys that are reserved for the operator or Kubernetes must not be set: remove or rename them. Reserved keys"
    f" are {', '.join(names.RESERVED_KEYS)}, and all that begin with {', '.join(names.RESERVED_PREFIXES)}",
)
"""The CEL rule that lets a user set no label or annotation by which a pod is taken for another."""
FREE_VARIABLES = (
    f"!(self.name in {cel_list(names.RESERVED_VARIABLES)})"
    f" && !{cel_list(names.RESERVED_VARIABLE_PREFIXES)}.exists(p, self.name.startsWith(p))",
    "an environment variable that is reserved must not be set: remove it. Reserved are"
    f" {', '.join(names.RESERVED_VARIABLES)}, and all that begin with {', '.join(names.RESERVED_VARIABLE_PREFIXES)}",
)
"""The CEL rule that keeps a user from the operator's variables, and from those that make a program load code."""

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
    """Value of the node label `nvidia.com/gpu.product`. Required for the formats `trt` and `tf-trt` and the accelerator
    `trt`. Default: any product."""
    resource_name: Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9.-]+/[a-zA-Z0-9._-]+$")] = (
        "nvidia.com/gpu"
    )
    """Extended resource that pods request. Default: nvidia.com/gpu."""
    count: Annotated[int, Field(ge=0, le=1024)] = 1
    """Number of GPUs that a pod requests. If 0, everything runs on the CPU. Default: 1."""


class Resources(ApiType):
    """The resource requests and limits of a container."""

    requests: Amounts = Field(default_factory=dict)
    """Requests by resource name. Default: those of the Helm values `jobs.resources` and `servers.resources`."""
    limits: Amounts = Field(default_factory=dict)
    """Limits by resource name. Default: those of the Helm values `jobs.resources` and `servers.resources`, plus the
    pod's own volumes."""


class LocalReference(ApiType):
    """A reference to an object in the same namespace."""

    name: DnsName
    """Name of the object."""


class Variable(ApiType):
    """An environment variable with a literal value."""

    model_config = ConfigDict(json_schema_extra=rules(FREE_VARIABLES))
    name: Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    """Name of the variable."""
    value: Annotated[str, StringConstraints(max_length=1024)] = ""
    """Value of the variable; `$(NAME)` is not replaced. Default: empty."""

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        """Refuse what the CRD's rule refuses, in objects that are older than the rule too."""
        if names.is_reserved_variable(self.name):
            raise ValueError(f"{self.name} is reserved and must not be set: remove it")
        return self


class Placement(ApiType):
    """Where pods run, and what else they have whatever they do."""

    node_selector: NodeLabels = Field(default_factory=dict)
    """Labels that a node must have to run the pod. Default: none."""
    tolerations: Annotated[list[Toleration], Field(max_length=16)] = Field(default_factory=list)
    """Taints that the pod tolerates, as in a pod's spec. Default: none."""
    affinity: Affinity | None = None
    """Affinity of the pod, as in a pod's spec, at most 16 KiB as JSON. Default: none."""
    topology_spread_constraints: Annotated[list[TopologySpread], Field(max_length=4), AfterValidator(one_a_key)] = (
        Field(default_factory=list)
    )
    """How evenly pods of one kind spread: `topologyKey`, `maxSkew` (default 1) and `whenUnsatisfiable` (default
    `ScheduleAnyway`). The operator selects the pods. Default: none."""
    priority_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the pod's PriorityClass. Default: none."""
    runtime_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Name of the pod's RuntimeClass. Default: none."""
    image_pull_secrets: Annotated[list[LocalReference], Field(max_length=8)] = Field(default_factory=list)
    """Secrets for pulling the images, of type kubernetes.io/dockerconfigjson. Default: none."""
    env: Annotated[list[Variable], Field(max_length=32, json_schema_extra=list_map("name"))] = Field(
        default_factory=list
    )
    """Environment variables of your code and of the servers, but none that the operator sets, or by which programs load
    code or find a proxy. Default: none."""
    labels: PodLabels = Field(default_factory=dict)
    """Labels to add to the pod and its Job, without reserved keys such as `triton-operator.dev/*`. Default: none."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations to add to the pod and its Job, without reserved keys, within the Helm value `allowed.annotations`.
    Default: none."""


class CommonPod(Placement):
    """Settings of all pods of the object."""

    run_as_user: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1000
    """User and group ID of all containers. Default: 1000."""
    fs_group: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """Group ID that owns the volumes. Default: that of `runAsUser`."""


class Pod(Placement):
    """Settings of some pods of the object, laid over those in `spec.pod`."""

    resources: Resources = Field(default_factory=Resources)
    """Resource requests and limits of the main container. The operator adds the GPU limit from `spec.gpu`."""

    def over(self, common: CommonPod) -> "Pod":
        """Return these settings laid over the common ones.

        Maps and variables are merged by their keys. Of other fields, one that is set replaces the common one whole.
        """
        fields = {name: getattr(common, name) for name in common.model_fields_set if name in Pod.model_fields}
        fields |= {name: getattr(self, name) for name in self.model_fields_set}
        for name in ("node_selector", "labels", "annotations"):
            fields[name] = getattr(common, name) | getattr(self, name)
        fields["env"] = list({each.name: each for each in (*common.env, *self.env)}.values())
        return Pod(**fields)
