"""The installation's settings, read from environment variables that the chart sets."""

import json
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeVar, cast

from triton_operator import names, policy_rules
from triton_operator.policy_rules import PolicyPeer, PolicyRule

InstanceGroupKind = Literal["Gpu", "Auto"]
Verification = Literal["Stat", "Content"]


class SettingsError(ValueError):
    """An environment variable is missing or has no allowed value."""


MOST_SERVER_ARGUMENTS = 32
"""The most flags of a server: each object's status holds them all, and has 32 KiB."""
LONGEST_CA_BUNDLE = 64 * 1024
"""The most characters of certificates. Each source Job's template holds them, and etcd takes 1.5 MiB an object."""
DEFAULTED_RESOURCES = ("memory", "ephemeral-storage")
"""The resources that have defaults. CPU and GPUs have none: what is measured depends on them."""
_SIZE = re.compile(r"\d+([kMGTPE]|[KMGTPE]i)?")


@dataclass(frozen=True)
class DefaultResources:
    """Requests and limits of memory and ephemeral storage, by the resource's name, for containers without their own."""

    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The operator's settings. Images are defaults that a spec may override and that the status pins."""

    converter_image: str
    """CONVERTER_IMAGE: the image of the Jobs."""
    server_image: str
    """SERVER_IMAGE: the image of tritonserver."""
    converter_tensorflow_image: str
    """CONVERTER_TENSORFLOW_IMAGE: the image of the Jobs that run TensorFlow."""
    converter_gpu_image: str = ""
    """CONVERTER_GPU_IMAGE: the image of the containers that run user code in objects with a GPU; empty: the one for
    CPUs, which has no TensorRT."""
    converter_trees_image: str = ""
    """CONVERTER_TREES_IMAGE: the image of the Jobs that run XGBoost, LightGBM or scikit-learn, where it is not the
    one for CPUs; no chart sets it. Empty: it is."""
    instance_group_kind: InstanceGroupKind = "Gpu"
    """INSTANCE_GROUP_KIND. ``Gpu``: KIND_GPU if a spec asks for a GPU. ``Auto``: KIND_AUTO, for clusters whose GPU
    resource has no GPU behind it, where KIND_GPU would fail to load."""
    server_arguments: tuple[str, ...] = ()
    """SERVER_ARGUMENTS, separated by spaces: flags that the server image knows and others do not, such as
    --allow-client-shm=true since server 2.68."""
    ipv6: bool = False
    """KUBERNETES_SERVICE_HOST, which the kubelet sets: whether the API server's Service has an IPv6 address. The
    servers' Services have one too then, because Kubernetes takes the cluster's first family for both."""
    namespaces: tuple[str, ...] = ()
    """WATCH_NAMESPACES, separated by commas; empty: all."""
    architecture: str = ""
    """ARCHITECTURE: value of the label kubernetes.io/arch of nodes for Jobs and servers; empty: any."""
    log_format: Literal["text", "json"] = "text"
    """LOG_FORMAT: the format of log lines."""
    metrics_port: int = 8080
    """METRICS_PORT: the port of /metrics, /healthz and /readyz."""
    unschedulable_seconds: int = 300
    """UNSCHEDULABLE_SECONDS: how long a conversion for one GPU product may wait for a node before its candidate is
    skipped. Default 300: what a cluster autoscaler needs for a GPU node."""
    measurements_per_node: int = 1
    """MEASUREMENTS_PER_NODE: how many Jobs measure at once on a node, or in the installation where the operator may not
    read nodes; 0: any number."""
    clients: tuple[PolicyPeer, ...] = ()
    """NETWORK_POLICY_CLIENTS, as JSON: who may reach the servers' inference ports; empty: anybody."""
    metrics_readers: tuple[PolicyPeer, ...] = ()
    """NETWORK_POLICY_METRICS, as JSON: who may reach the servers' metrics port; empty: anybody."""
    sources_egress: tuple[PolicyRule, ...] = ()
    """SOURCES_EGRESS, as JSON: the NetworkPolicyEgressRules of pods that download a source; empty: none is let out."""
    mesh_egress: tuple[PolicyRule, ...] = ()
    """MESH_EGRESS, as JSON: the NetworkPolicyEgressRules of all pods, for the proxy that a mesh adds to them; empty:
    none."""
    mesh_ingress: tuple[PolicyRule, ...] = ()
    """MESH_INGRESS, as JSON: the NetworkPolicyIngressRules of all pods, for such a proxy; empty: none."""
    sources_proxy: str = ""
    """SOURCES_PROXY: URL of the HTTP proxy for downloads, without credentials; empty: none."""
    sources_no_proxy: tuple[str, ...] = ()
    """SOURCES_NO_PROXY, separated by commas: domains and hosts that downloads reach without the proxy."""
    sources_ca_bundle: str = ""
    """SOURCES_CA_BUNDLE: certificates in PEM that downloads trust besides the usual authorities."""
    sources_hub: str = ""
    """SOURCES_HUB: URL of a server with the API of the Hugging Face hub; empty: the hub."""
    sources_package_index: str = ""
    """SOURCES_PACKAGE_INDEX: URL of the package index for spec.conversion.requirements; empty: PyPI."""
    tracing_endpoint: str = ""
    """TRACING_ENDPOINT: URL to which servers with spec.serving.tracing send traces, by OTLP over HTTP; empty: none."""
    tracing_egress: tuple[PolicyRule, ...] = ()
    """TRACING_EGRESS, as JSON: the NetworkPolicyEgressRules of those servers."""
    prometheus_address: str = ""
    """PROMETHEUS_ADDRESS: URL of the Prometheus that KEDA asks for the servers' load; empty: nothing is scaled."""
    gateway_api: bool = False
    """GATEWAY_API, true or false: whether objects with spec.serving.route get an HTTPRoute."""
    lease: tuple[str, str] | None = None
    """LEASE, as NAMESPACE/NAME: only one replica with the same Lease works at a time. None: this process is alone."""
    holder: str = ""
    """POD_NAME: the name of this replica in the Lease, which needs one, and in the API server's audit log."""
    job_resources: DefaultResources = field(default_factory=DefaultResources)
    """JOB_RESOURCES, as JSON: for each container of a Job, unless spec.conversion.pod or spec.serving.pod sets them."""
    server_resources: DefaultResources = field(default_factory=DefaultResources)
    """SERVER_RESOURCES, as JSON: the same for the containers of servers."""
    user_code_runtime_class: str = ""
    """USER_CODE_RUNTIME_CLASS: the RuntimeClass of pods that run users' code; empty: the spec's."""
    user_code_host_users: bool | None = None
    """USER_CODE_HOST_USERS, true or false. False: pods that run users' code get a user namespace. None: not set."""
    allowed_images: tuple[str, ...] = ()
    """ALLOWED_IMAGES, separated by commas: how the images begin that a spec may name; empty: anyhow."""
    allowed_claims: tuple[str, ...] = ()
    """ALLOWED_CLAIMS, separated by commas: names of the claims that a spec may name, with *; empty: any."""
    allowed_service_accounts: tuple[str, ...] = ()
    """ALLOWED_SERVICE_ACCOUNTS, separated by commas: those that a spec may name for its downloads, as NAMESPACE/NAME;
    empty: none."""
    allowed_gateways: tuple[str, ...] = ()
    """ALLOWED_GATEWAYS, separated by commas: Gateways that a route may name, as NAMESPACE/NAME with *; empty: any."""
    allowed_hostnames: tuple[str, ...] = ()
    """ALLOWED_HOSTNAMES, separated by commas: the host names that a route may name, with *; empty: any, and none."""
    allowed_clients: tuple[PolicyPeer, ...] = ()
    """ALLOWED_CLIENTS, as JSON: whom a spec may let in besides ``clients``; empty: nobody else."""
    allowed_annotations: tuple[str, ...] = ()
    """ALLOWED_ANNOTATIONS, separated by commas: how the annotations of pods begin that a spec may set; empty: anyhow.
    With any, pods that run users' code get none from a spec."""
    allowed_python_steps: bool = False
    """ALLOWED_PYTHON_STEPS, true or false: whether a spec may have models whose code runs inside the server."""
    inherited_annotations: tuple[str, ...] = ()
    """INHERITED_ANNOTATIONS, separated by commas: how the annotations of an object begin that all its children get;
    empty: none."""
    machine: str = ""
    """The name of the one machine whose processes Jobs and servers are; empty: they are a cluster's pods. No variable
    sets it."""
    verification: Verification = "Stat"
    """REPOSITORY_VERIFICATION: what a server's pod compares before the server starts. ``Stat``: the attributes of the
    revision's files, and their content only if those differ. ``Content``: the content each time. A server that runs
    keeps what it was made with."""

    @property
    def own_images(self) -> tuple[str, ...]:
        """The images of the installation; one that it does not have is empty."""
        converters = (self.converter_image, self.converter_tensorflow_image, self.converter_gpu_image)
        return (*converters, self.converter_trees_image, self.server_image)

    def allows_image(self, image: str) -> bool:
        """Whether an object may name an image; the installation's own are always allowed."""
        return not self.allowed_images or image in self.own_images or image.startswith(self.allowed_images)

    def keeps_image(self, image: str) -> bool:
        """Whether a recorded image may still run: one that an object may name, or of another release of our own."""
        own_repositories = {names.repository(each) for each in self.own_images if each}
        return self.allows_image(image) or names.repository(image) in own_repositories

    def allows_claim(self, name: str) -> bool:
        """Whether an object may name a claim of its namespace. The one that the operator makes for it needs no name."""
        return not self.allowed_claims or any(fnmatchcase(name, each) for each in self.allowed_claims)

    def allows_gateway(self, namespace: str, name: str) -> bool:
        """Whether a route may name a Gateway."""
        allowed = self.allowed_gateways
        return not allowed or any(fnmatchcase(f"{namespace}/{name}", each) for each in allowed)

    def allows_hostname(self, hostname: str) -> bool:
        """Whether a route may name a host name, whose first label may be ``*``; empty: all that the listeners take."""
        return not self.allowed_hostnames or any(fnmatchcase(hostname, each) for each in self.allowed_hostnames)

    def allows_client(self, namespace: str, peer: PolicyPeer) -> bool:
        """Whether an object of a namespace may let in a peer: where anybody is let in, it may let in anybody."""
        bounds = (*self.clients, *self.allowed_clients)
        return not self.clients or any(policy_rules.is_within(peer, each, namespace) for each in bounds)

    def allows_annotation(self, key: str) -> bool:
        """Whether an object may set an annotation of its pods."""
        return not self.allowed_annotations or key.startswith(self.allowed_annotations)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings; raises SettingsError naming the variable."""
        return cls(
            converter_image=_required(environment, "CONVERTER_IMAGE"),
            server_image=_required(environment, "SERVER_IMAGE"),
            converter_tensorflow_image=_required(environment, "CONVERTER_TENSORFLOW_IMAGE"),
            converter_gpu_image=environment.get("CONVERTER_GPU_IMAGE", ""),
            converter_trees_image=environment.get("CONVERTER_TREES_IMAGE", ""),
            instance_group_kind=cast(InstanceGroupKind, _one_of(environment, "INSTANCE_GROUP_KIND", ("Gpu", "Auto"))),
            server_arguments=_arguments(environment),
            ipv6=":" in environment.get("KUBERNETES_SERVICE_HOST", ""),
            namespaces=_comma_list(environment, "WATCH_NAMESPACES"),
            architecture=environment.get("ARCHITECTURE", ""),
            log_format=cast(Literal["text", "json"], _one_of(environment, "LOG_FORMAT", ("text", "json"))),
            metrics_port=_number(environment, "METRICS_PORT", Settings.metrics_port, 1, 65535),
            unschedulable_seconds=_number(
                environment, "UNSCHEDULABLE_SECONDS", Settings.unschedulable_seconds, 1, 86400
            ),
            measurements_per_node=_number(environment, "MEASUREMENTS_PER_NODE", Settings.measurements_per_node, 0, 100),
            clients=_rules(environment, "NETWORK_POLICY_CLIENTS", policy_rules.peers),
            metrics_readers=_rules(environment, "NETWORK_POLICY_METRICS", policy_rules.peers),
            sources_egress=_rules(environment, "SOURCES_EGRESS", policy_rules.egress),
            mesh_egress=_rules(environment, "MESH_EGRESS", policy_rules.egress),
            mesh_ingress=_rules(environment, "MESH_INGRESS", policy_rules.ingress),
            sources_proxy=_proxy(environment, "SOURCES_PROXY"),
            sources_no_proxy=_comma_list(environment, "SOURCES_NO_PROXY"),
            sources_ca_bundle=_certificates(environment, "SOURCES_CA_BUNDLE"),
            sources_hub=_server(environment, "SOURCES_HUB"),
            sources_package_index=_server(environment, "SOURCES_PACKAGE_INDEX"),
            tracing_endpoint=_address(environment, "TRACING_ENDPOINT"),
            tracing_egress=_rules(environment, "TRACING_EGRESS", policy_rules.egress),
            prometheus_address=_address(environment, "PROMETHEUS_ADDRESS"),
            gateway_api=_one_of(environment, "GATEWAY_API", ("false", "true")) == "true",
            verification=cast(Verification, _one_of(environment, "REPOSITORY_VERIFICATION", ("Stat", "Content"))),
            lease=_lease(environment),
            holder=_required(environment, "POD_NAME") if environment.get("LEASE") else environment.get("POD_NAME", ""),
            job_resources=_resources(environment, "JOB_RESOURCES"),
            server_resources=_resources(environment, "SERVER_RESOURCES"),
            user_code_runtime_class=environment.get("USER_CODE_RUNTIME_CLASS", ""),
            user_code_host_users={"true": True, "false": False}.get(
                _one_of(environment, "USER_CODE_HOST_USERS", ("", "true", "false"))
            ),
            allowed_images=_comma_list(environment, "ALLOWED_IMAGES"),
            allowed_claims=_comma_list(environment, "ALLOWED_CLAIMS"),
            allowed_clients=_rules(environment, "ALLOWED_CLIENTS", policy_rules.peers),
            allowed_annotations=_comma_list(environment, "ALLOWED_ANNOTATIONS"),
            allowed_python_steps=_one_of(environment, "ALLOWED_PYTHON_STEPS", ("false", "true")) == "true",
            inherited_annotations=_comma_list(environment, "INHERITED_ANNOTATIONS"),
            allowed_service_accounts=_comma_list(environment, "ALLOWED_SERVICE_ACCOUNTS"),
            allowed_gateways=_comma_list(environment, "ALLOWED_GATEWAYS"),
            allowed_hostnames=_comma_list(environment, "ALLOWED_HOSTNAMES"),
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


def _comma_list(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in environment.get(name, "").split(",") if each.strip())


def _arguments(environment: Mapping[str, str]) -> tuple[str, ...]:
    arguments = tuple(environment.get("SERVER_ARGUMENTS", "").split())
    if len(arguments) > MOST_SERVER_ARGUMENTS:
        raise SettingsError(
            f"SERVER_ARGUMENTS has {len(arguments)} arguments; it takes at most {MOST_SERVER_ARGUMENTS}, because every"
            " object's status holds them"
        )
    return arguments


def _resources(environment: Mapping[str, str], name: str) -> DefaultResources:
    example = '{"requests": {"memory": "256Mi"}, "limits": {"memory": "16Gi", "ephemeral-storage": "2Gi"}}'
    try:
        document = json.loads(environment.get(name) or "{}")
        resources = DefaultResources(**{field: dict(amounts) for field, amounts in document.items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsError(f"{name} is {environment[name]!r}; it takes JSON such as {example}: {error}") from error
    for resource, amount in [*resources.requests.items(), *resources.limits.items()]:
        if resource not in DEFAULTED_RESOURCES:
            raise SettingsError(f"{name} names {resource}; it takes {' and '.join(DEFAULTED_RESOURCES)}")
        if not isinstance(amount, str) or not _SIZE.fullmatch(amount):
            raise SettingsError(f"{name} has {resource}: {amount!r}; it takes a quantity as text, such as 16Gi")
    return resources


def _proxy(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if value and not re.fullmatch(r"https?://[A-Za-z0-9.-]+:[0-9]{1,5}/?", value):
        raise SettingsError(f"{name} is no URL http://HOST:PORT or https://HOST:PORT without credentials")
    return value


def _server(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").rstrip("/")
    if value and not re.fullmatch(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*", value):
        raise SettingsError(f"{name} is no URL https://HOST/PATH without credentials")
    return value


def _address(environment: Mapping[str, str], name: str) -> str:
    """Read the URL of a server that may be in the cluster, where few have a certificate."""
    value = environment.get(name, "").rstrip("/")
    if value and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*", value):
        raise SettingsError(f"{name} is no URL http://HOST:PORT/PATH or https://HOST:PORT/PATH without credentials")
    return value


def _certificates(environment: Mapping[str, str], name: str) -> str:
    """Read certificates in PEM. A wrong one would fail each download."""
    value = environment.get(name, "").strip()
    if len(value) > LONGEST_CA_BUNDLE:
        raise SettingsError(f"{name} has {len(value)} characters; it takes at most {LONGEST_CA_BUNDLE}")
    try:
        if value:
            ssl.create_default_context(cadata=value)
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(f"{name} holds no certificates in PEM: {error}") from error
    return value


def _lease(environment: Mapping[str, str]) -> tuple[str, str] | None:
    value = environment.get("LEASE", "")
    namespace, slash, name = value.partition("/")
    if value and not (namespace and slash and name):
        raise SettingsError(f"LEASE is {value!r}; it takes NAMESPACE/NAME")
    return (namespace, name) if value else None


_T = TypeVar("_T")


def _rules(environment: Mapping[str, str], name: str, read: Callable[[str], _T]) -> _T:
    try:
        return read(environment.get(name) or "[]")
    except ValueError as error:
        raise SettingsError(f"{name} is {error}") from error
