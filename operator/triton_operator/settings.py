"""The installation's settings, read from environment variables that the chart sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from socket import gethostname
from typing import Literal, cast

InstanceGroupKind = Literal["Gpu", "Auto"]
Verification = Literal["Stat", "Content"]


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
    lease: tuple[str, str] | None = None
    """LEASE, as NAMESPACE/NAME: only one replica with the same Lease works at a time. None: this process is alone."""
    holder: str = ""
    """POD_NAME: the name of this replica in the Lease and in the API server's audit log."""
    verification: Verification = "Stat"
    """REPOSITORY_VERIFICATION: what a server's pod compares before the server starts. ``Stat``: the attributes of the
    revision's files, and their content only if those differ. ``Content``: the content each time. A server that runs
    keeps what it was made with."""

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
            verification=cast(Verification, _one_of(environment, "REPOSITORY_VERIFICATION", ("Stat", "Content"))),
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
