"""How the active revision serves."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from triton_operator.api.duration import Span, Within
from triton_operator.api.gateway import Route
from triton_operator.api.network_policy import NetworkPolicy
from triton_operator.api.pod import Pod
from triton_operator.api.quantity import Quantity
from triton_operator.api.schema import ApiType, Image, rules
from triton_operator.api.server_arguments import ServerArgument


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
    Default: 20."""

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if self.min_replicas > self.max_replicas:
            raise ValueError("minReplicas is greater than maxReplicas: raise maxReplicas, or lower minReplicas")
        return self


class Soak(ApiType):
    """The first requests to a new revision, while the previous one still runs and can come back at once."""

    duration: Annotated[Span, Within("10s", "24h")] = "5m"
    """Length of the soak, and of each step of a canary, from 10s to 24h. A verdict comes at its end; a restart undoes
    the revision at once. Default: 5m."""
    min_requests: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100
    """Requests that a verdict needs. Latencies are compared only if the other revision answered as many; a pod with
    fewer is not judged by itself. Default: 100."""
    max_error_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 1
    """Highest share of the requests that may fail, in percent, in the worst pod. Default: 1."""
    max_latency_percent: Annotated[int, Field(ge=1, le=1000)] = 40
    """How far the mean latency of the worst pod may be above the other revision's, in percent. Default: 40."""


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
    mode: Literal["Serve", "None"] = "Serve"
    """`None` makes no Deployment and no Service: candidates are checked, measured and selected, and `spec.publish` has
    what passed. Default: Serve."""
    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Number of server pods. `kubectl scale` and autoscalers set it too. Default: 1."""
    autoscaling: Autoscaling | None = None
    """Has KEDA set `replicas`, by the load as a share of the measured saturation. It needs the Helm value
    `autoscaling.prometheusAddress`. Leave `replicas` out then. Default: none."""
    soak: Soak | None = None
    """Watches each new active revision, and goes back if it errs, is slower, or restarts. Default: none."""
    route: Route | None = None
    """Has an HTTPRoute of the Gateway API lead requests from outside the cluster to the Service. It needs the Helm
    value `gatewayApi.enabled`. Default: none."""
    network_policy: NetworkPolicy | None = None
    """Who may send requests to the servers. Default: the peers of the Helm value `networkPolicy.clients`."""
    image: Image = ""
    """Image of tritonserver. Default: that in `status.images`."""
    arguments: Annotated[list[ServerArgument], Field(max_length=32)] = Field(default_factory=list)
    """Arguments of tritonserver, of those in docs/formats.md. Default: none."""
    shared_memory_size: Quantity = "1Gi"
    """Size of /dev/shm, also of Jobs that run user code. Default: 1Gi."""
    tracing: bool = False
    """Whether the servers send traces, by default of one in 1000 requests, to the Helm value `tracing.endpoint`.
    Default: false."""
    progress_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 600
    """Time limit for a server to load its model, in seconds. Default: 600."""
    pod: Pod = Field(default_factory=Pod)
    """Settings of the server pods, laid over `spec.pod` as `conversion.pod` is; also of the servers in profile and
    search Jobs, and of where those Jobs run."""

    @property
    def serves(self) -> bool:
        """Whether servers are made of what is selected."""
        return self.mode == "Serve"

    @model_validator(mode="after")
    def _check_canary(self) -> Self:
        """Refuse what the CRD's rule refuses where there is no API server."""
        if self.route is not None and self.route.canary and self.soak is None:
            raise ValueError(CANARY_NEEDS_SOAK)
        return self
