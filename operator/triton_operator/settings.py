"""The installation's settings, read from environment variables that the chart sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from socket import gethostname
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

InstanceGroupKind = Literal["Gpu", "Auto"]
Peer = Mapping[str, Any]
"""A Kubernetes NetworkPolicyPeer, without its empty fields, which the API server does not keep."""


class SettingsError(ValueError):
    """An environment variable is missing or has no allowed value."""


@dataclass(frozen=True)
class Settings:
    """The operator's settings. Images are defaults that a spec may override and that the status pins."""

    converter_image: str
    """CONVERTER_IMAGE: the image of the Jobs."""
    server_image: str
    """SERVER_IMAGE: the image of tritonserver."""
    converter_tensorflow_image: str
    """CONVERTER_TENSORFLOW_IMAGE: the image of the Jobs that run TensorFlow."""
    instance_group_kind: InstanceGroupKind = "Gpu"
    """INSTANCE_GROUP_KIND. ``Gpu``: KIND_GPU if a spec asks for a GPU. ``Auto``: KIND_AUTO, for clusters whose GPU
    resource has no GPU behind it, where KIND_GPU would fail to load."""
    server_arguments: tuple[str, ...] = ()
    """SERVER_ARGUMENTS, separated by spaces: flags that the server image knows and others do not, such as
    --allow-client-shm=true since server 2.68."""
    namespaces: tuple[str, ...] = ()
    """WATCH_NAMESPACES, separated by commas; empty: all."""
    log_format: Literal["text", "json"] = "text"
    """LOG_FORMAT: the format of log lines."""
    metrics_port: int = 8080
    """METRICS_PORT: the port of /metrics, /healthz and /readyz."""
    unschedulable_seconds: int = 300
    """UNSCHEDULABLE_SECONDS: how long a conversion for one GPU product may wait for a node before its candidate is
    skipped. Default 300: what a cluster autoscaler needs for a GPU node."""
    clients: tuple[Peer, ...] = ()
    """NETWORK_POLICY_CLIENTS, as JSON: who may reach the servers' inference ports; empty: anybody."""
    metrics_readers: tuple[Peer, ...] = ()
    """NETWORK_POLICY_METRICS, as JSON: who may reach the servers' metrics port; empty: anybody."""
    lease: tuple[str, str] | None = None
    """LEASE, as NAMESPACE/NAME: only one replica with the same Lease works at a time. None: this process is alone."""
    holder: str = ""
    """POD_NAME: the name of this replica in the Lease and in the API server's audit log."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings; raises SettingsError naming the variable."""
        return cls(
            converter_image=_required(environment, "CONVERTER_IMAGE"),
            server_image=_required(environment, "SERVER_IMAGE"),
            converter_tensorflow_image=_required(environment, "CONVERTER_TENSORFLOW_IMAGE"),
            instance_group_kind=cast(InstanceGroupKind, _one_of(environment, "INSTANCE_GROUP_KIND", ("Gpu", "Auto"))),
            server_arguments=tuple(environment.get("SERVER_ARGUMENTS", "").split()),
            namespaces=tuple(
                name.strip() for name in environment.get("WATCH_NAMESPACES", "").split(",") if name.strip()
            ),
            log_format=cast(Literal["text", "json"], _one_of(environment, "LOG_FORMAT", ("text", "json"))),
            metrics_port=_number(environment, "METRICS_PORT", Settings.metrics_port, 1, 65535),
            unschedulable_seconds=_number(
                environment, "UNSCHEDULABLE_SECONDS", Settings.unschedulable_seconds, 1, 86400
            ),
            clients=_peers(environment, "NETWORK_POLICY_CLIENTS"),
            metrics_readers=_peers(environment, "NETWORK_POLICY_METRICS"),
            lease=_lease(environment),
            holder=environment.get("POD_NAME") or gethostname(),
        )


def _required(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise SettingsError(f"{name} is not set")
    return environment[name]


def _one_of(environment: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = environment.get(name) or allowed[0]
    if value not in allowed:
        raise SettingsError(f"{name} is {value!r}; it takes one of {', '.join(allowed)}")
    return value


def _number(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = environment.get(name) or str(default)
    if not value.isdecimal() or not least <= int(value) <= most:
        raise SettingsError(f"{name} is {value!r}; it takes a number, {least} to {most}")
    return int(value)


def _lease(environment: Mapping[str, str]) -> tuple[str, str] | None:
    value = environment.get("LEASE", "")
    namespace, slash, name = value.partition("/")
    if value and not (namespace and slash and name):
        raise SettingsError(f"LEASE is {value!r}; it takes NAMESPACE/NAME")
    return (namespace, name) if value else None


class _Part(BaseModel):
    """A part of a peer, with Kubernetes' names of its fields."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Expression(_Part):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []

    @model_validator(mode="after")
    def _has_values_if_it_takes_some(self) -> Self:
        if self.operator.endswith("In") != bool(self.values):
            raise ValueError("In and NotIn take values, Exists and DoesNotExist take none")
        return self


class _Selector(_Part):
    match_labels: dict[str, str] = {}
    match_expressions: list[_Expression] = []


class _Block(_Part):
    cidr: str
    holes: list[str] = Field([], alias="except")

    @model_validator(mode="after")
    def _holes_lie_within(self) -> Self:
        whole = ip_network(self.cidr)
        for hole in map(ip_network, self.holes):
            if hole == whole or hole.version != whole.version or not hole.subnet_of(whole):  # type: ignore[arg-type]
                raise ValueError(f"the exception {hole} does not lie within {whole}")
        return self


class _Peer(_Part):
    ip_block: _Block | None = None
    namespace_selector: _Selector | None = None
    pod_selector: _Selector | None = None

    @model_validator(mode="after")
    def _is_a_block_or_selects(self) -> Self:
        selects = self.namespace_selector is not None or self.pod_selector is not None
        if selects == (self.ip_block is not None):
            raise ValueError("a peer has an ipBlock, or a namespaceSelector, a podSelector or both")
        return self


_PEERS = TypeAdapter(list[_Peer])


def _peers(environment: Mapping[str, str], name: str) -> tuple[Peer, ...]:
    """Read a list of peers. The API server would refuse a wrong one too, but only for each object."""
    try:
        found = _PEERS.validate_json(environment.get(name) or "[]")
    except ValidationError as error:
        words = [f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in error.errors()]
        raise SettingsError(f"{name} is no JSON list of Kubernetes NetworkPolicyPeers: {'; '.join(words)}") from error
    return tuple(each.model_dump(by_alias=True, exclude_defaults=True) for each in found)
