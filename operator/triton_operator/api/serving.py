"""How the active revision serves."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator

from triton_operator.api.backend_settings import is_allowed, option, option_rule
from triton_operator.api.duration import Span, Within
from triton_operator.api.gateway import Route
from triton_operator.api.network_policy import NetworkPolicy
from triton_operator.api.pod import Pod
from triton_operator.api.quantity import Quantity, between
from triton_operator.api.schema import ApiType, BackendValue, Image, rules
from triton_operator.api.server_flags import flag_rules, refusals

Flags = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=64)]],
    Field(max_length=16, json_schema_extra=rules(*flag_rules())),
]


class BackendConfig(ApiType):
    """A setting of a Triton backend: the tritonserver option `--backend-config=BACKEND,NAME=VALUE`.

    Settings that only tune execution are allowed.
    """

    model_config = ConfigDict(json_schema_extra=rules(option_rule()))
    backend: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9_]*$")] = ""
    """Name of the backend. Default: all backends."""
    name: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-zA-Z0-9_-]+$")]
    """Name of the setting."""
    value: BackendValue
    """Value of the setting."""

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        """Refuse what the CRD's rule refuses, in objects that are older than the rule too."""
        if not is_allowed(self.backend, self.name):
            raise ValueError(f"{option(self.backend, self.name)} must not be set: docs/formats.md lists what may be")
        return self


class CudaMemoryPool(ApiType):
    """A CUDA memory pool: the tritonserver option `--cuda-memory-pool-byte-size=DEVICE:SIZE`."""

    device: Annotated[int, Field(ge=0, le=63)]
    """Index of the GPU within the pod, from 0."""
    size: Annotated[Quantity, between("0", "1Ti")]
    """Size of the pool, at most 1Ti."""


class Tracing(ApiType):
    """Traces of single requests, which the servers send to the installation's OpenTelemetry collector."""

    sample_rate: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    """One of so many requests is traced: the tritonserver option `--trace-config=rate=N`. Default: 1000, as in
    tritonserver."""


class Autoscaling(ApiType):
    """Scaling by the load on the active revision, as a share of what one replica was measured to do."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
                "minReplicas must not be greater than maxReplicas: raise maxReplicas, or lower minReplicas",
            )
        )
    )
    min_replicas: Annotated[int, Field(ge=1, le=100)] = 1
    """Lowest number of server pods. Default: 1."""
    max_replicas: Annotated[int, Field(ge=1, le=100)]
    """Highest number of server pods."""
    headroom_percent: Annotated[int, Field(ge=0, le=90)] = 20
    """Share of the measured saturation that is left free, in percent. An edit has the candidates profiled again.
    Default: 20, so that a load of more than 80 % of the measured saturation asks for another pod."""

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if self.min_replicas > self.max_replicas:
            raise ValueError("minReplicas is greater than maxReplicas: raise maxReplicas, or lower minReplicas")
        return self


class Soak(ApiType):
    """The first requests to a new revision, while the previous one still runs and can come back at once."""

    duration: Annotated[Span, Within("10s", "24h")] = "5m"
    """Length of the soak, and of each step of a canary, from 10s to 24h. Errors and latency are judged at its end only;
    both revisions have their pods until there is a verdict, which `rollout.onInconclusive` may put off. Default: 5m, in
    which one request every 3 s makes the 100 of `minRequests`."""
    min_requests: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100
    """Requests that the new revision must have answered since the Service moved, or since the canary's step began, for
    a verdict; the revision that its latency is compared with needs as many. A single pod with fewer is not judged by
    itself. Default: 100, of which one failed request is 1 %, as `maxErrorPercent` allows."""
    max_error_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 1
    """Highest share of the requests that may fail, in percent, in the worst pod. Default: 1."""
    max_latency_percent: Annotated[int, Field(ge=1, le=1000)] = 40
    """How far the mean latency of the worst pod may be above that of the other revision, in percent: of the previous
    one while that was active, or, in a canary, of the active one in the same time. Default: 40, twice what two stable
    measurements may differ by without a cause, because a soak compares the traffic of different times."""


CANARY_NEEDS_SOAK = (
    "route.canary needs serving.soak, whose fields judge each step: add `soak: {}` for all defaults, or remove the"
    " canary"
)


class Serving(ApiType):
    """The Deployment that serves the active revision."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.route) || !has(self.route.canary) || self.route.canary.size() == 0 || has(self.soak)",
                CANARY_NEEDS_SOAK,
            )
        )
    )
    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Number of server pods. `kubectl scale` and autoscalers set it too; it changes nothing else. If 0, no server
    runs. Default: 1."""
    autoscaling: Autoscaling | None = None
    """Has KEDA set `replicas`, by the load on the active revision as a share of the measured saturation. It needs KEDA
    and the Helm value `autoscaling.prometheusAddress`; the condition Autoscaling says what is missing. Leave `replicas`
    out of the manifest then. Default: none; `replicas` stays as it is set."""
    soak: Soak | None = None
    """Watches each new revision after the Service has moved to it, and moves the Service back if it fails requests, is
    slower than the previous revision, or restarts; `soak: {}` takes all defaults. The condition Soaked tells the
    verdict. Default: none; the previous revision is deleted as soon as the Service has moved."""
    route: Route | None = None
    """Has an HTTPRoute of the Gateway API lead requests from outside the cluster to the object's Service, over HTTP and
    gRPC at the same host name. It needs the Gateway API and the Helm value `gatewayApi.enabled`; the condition Routed
    says what is missing. With `canary`, a new revision gets a share of these requests first. Default: none."""
    network_policy: NetworkPolicy | None = None
    """Who may send requests to the servers. Default: the peers of the Helm value `networkPolicy.clients`, which is
    anybody unless the administrator sets it."""
    image: Image = ""
    """Image of tritonserver. Default: the image in `status.images`, which is the Helm value `images.server` at the time
    of the last edit that converted every model again."""
    backend_config: Annotated[list[BackendConfig], Field(max_length=16)] = Field(default_factory=list)
    """Settings of Triton's backends, such as `onnxruntime` `enable-global-threadpool`. Those that only tune execution
    are allowed; docs/formats.md lists them. Default: none."""
    flags: Flags = Field(default_factory=dict)
    """Further flags of tritonserver without their `--`, such as `http-thread-count: "16"`. Those that only tune are
    allowed; docs/formats.md lists them. The candidates are measured with them too. A flag of the Helm value
    `server.arguments` comes after them, and wins. Default: none."""
    pinned_memory_pool: Annotated[Quantity, between("0", "1Ti")] = "256Mi"
    """Size of tritonserver's pinned memory pool, at most 1Ti. Default: 256Mi, as in tritonserver."""
    cuda_memory_pools: Annotated[list[CudaMemoryPool], Field(max_length=64)] = Field(default_factory=list)
    """Sizes of tritonserver's CUDA memory pools. Default: 64Mi for each GPU, as in tritonserver."""
    shared_memory_size: Quantity = "1Gi"
    """Size of /dev/shm, also of Jobs that run user code. The container runtime's default of 64 MiB is too small for
    Python backends, for `performance.sharedMemory: System`, and for the workers of PyTorch's DataLoader. Default:
    1Gi."""
    tracing: Tracing | None = None
    """Traces of requests. They need the Helm value `tracing.endpoint`. Default: none."""
    log_verbose: Annotated[int, Field(ge=0, le=4)] = 0
    """Verbosity of the servers' log: the tritonserver option `--log-verbose=N`. From 1 on, each request is logged, with
    its ID and its model, in about a dozen lines. Default: 0."""
    progress_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 600
    """Time limit for a server to load its model, in seconds. After that the rollout fails. Default: 600, as in a
    Deployment."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the server pods, laid over `spec.pod`: maps and `env` are merged by key, and any other field replaces
    that of `spec.pod` whole. They also apply to the server container in profile and search Jobs, and decide where
    the pods of those Jobs are scheduled."""

    @field_validator("flags")
    @classmethod
    def _check_flags(cls, flags: dict[str, str]) -> dict[str, str]:
        """Refuse what the CRD's rules refuse, in objects that are older than a rule too."""
        if found := list(refusals(flags)):
            raise ValueError("; ".join(found))
        return flags

    @model_validator(mode="after")
    def _check_canary(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if self.route is not None and self.route.canary and self.soak is None:
            raise ValueError(CANARY_NEEDS_SOAK)
        return self
