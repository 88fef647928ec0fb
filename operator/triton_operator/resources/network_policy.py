"""The NetworkPolicies of the Jobs' pods and of the servers. Both may run the author's code."""

from collections.abc import Sequence
from dataclasses import dataclass

from triton_operator import names
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.policy_rules import PolicyPeer, PolicyRule
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT, METRICS_PORT, sends_traces

DNS = [{"protocol": protocol, "port": port} for port in (53, 5353) for protocol in ("UDP", "TCP")]
"""Where the cluster's DNS answers. A policy is judged by the pod that a Service leads to, and OpenShift's DNS pods
listen on 5353."""


@dataclass(frozen=True)
class _Rules:
    """The pods that a policy closes, and what it lets through all the same."""

    selector: Body
    ingress: Sequence[PolicyRule] = ()
    egress: Sequence[PolicyRule] = ()


def jobs_policy(context: Context) -> Body:
    """The policy by which no Job's pod is reached or reaches anything but what the installation's mesh needs.

    Policies add up. A private server and its client share a pod, and talk over its loopback interface.
    """
    settings = context.settings
    rules = _Rules(_having(context, names.STAGE_LABEL), settings.mesh_ingress, settings.mesh_egress)
    return _policy(context, names.network_policy(context.name), "jobs", rules)


def sources_policy(context: Context) -> Body:
    """The policy by which the pods that download a source reach what the installation says."""
    selector = {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: context.name, names.DOWNLOADS_LABEL: "true"}}
    rules = _Rules(selector, egress=context.settings.sources_egress)
    return _policy(context, names.sources_policy(context.name), "jobs", rules)


def server_policies(context: Context) -> tuple[Body, ...]:
    """The policies that an object with a server needs: one closes the servers, one opens them to the measure Job.

    Both let through what the installation's mesh needs. With a soak, a third one lets the snapshot Jobs reach the
    servers' metrics, and nothing else. A server answers, and asks nobody but the collector of traces, if it sends some:
    another policy lets such a server out, by its name. The kubelet's probes come from the node, which policies do not
    keep out.
    """
    servers = _having(context, names.SERVER_LABEL)
    measure, snapshot = (
        {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: context.name, names.STAGE_LABEL: stage}}
        for stage in ("measure", "snapshot")
    )
    ingress: list[PolicyRule] = [
        {"from": [{"podSelector": measure}], "ports": _ports(HTTP_PORT, GRPC_PORT, METRICS_PORT)},
        *_clients(context),
        _from(context.settings.metrics_readers, METRICS_PORT),
        *context.settings.mesh_ingress,
    ]
    soaked: tuple[Body, ...] = ()
    if context.spec.serving.soak is not None:
        metrics = _ports(METRICS_PORT)
        ingress.append({"from": [{"podSelector": snapshot}], "ports": metrics})
        reach = [{"to": [{"podSelector": servers}], "ports": metrics}]
        soaked = (_policy(context, names.snapshot_policy(context.name), "jobs", _Rules(snapshot, egress=reach)),)
    egress: list[Body] = [{"to": [{"podSelector": servers}]}, {"ports": DNS}]
    closed = _Rules(servers, ingress, context.settings.mesh_egress)
    return (
        _policy(context, names.servers_policy(context.name), "server", closed),
        _policy(context, names.measure_policy(context.name), "jobs", _Rules(measure, egress=egress)),
        *soaked,
        *_traces_policies(context),
    )


def _traces_policies(context: Context) -> tuple[Body, ...]:
    """The policy by which the servers that send traces reach the collector; none if no server does.

    It names them, because the spec tells nothing of a server that was made before an edit, or that a rollback brought
    back: it may run a Python step, which must reach nothing.
    """
    egress = context.settings.tracing_egress if context.spec.serving.tracing else ()
    found = sorted(name for name, view in context.observed.servers.items() if sends_traces(view.body))
    if not egress or not found:
        return ()
    chosen: Body = {"key": names.SERVER_LABEL, "operator": "In", "values": found}
    selector = {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: context.name}, "matchExpressions": [chosen]}
    return (_policy(context, names.traces_policy(context.name), "server", _Rules(selector, egress=egress)),)


def opening(owner_name: str) -> tuple[str, ...]:
    """Names of the policies that only open something to pods that another policy closes.

    They go when nobody wants them any more. Those that close pods stay, because a pod may outlive its Deployment or Job
    by its grace period.
    """
    kinds = (names.sources_policy, names.measure_policy, names.snapshot_policy, names.traces_policy)
    return tuple(name(owner_name) for name in kinds)


def _having(context: Context, label: str) -> Body:
    """Select the object's pods that have a label."""
    return {
        "matchLabels": {names.TRITON_DEPLOYMENT_LABEL: context.name},
        "matchExpressions": [{"key": label, "operator": "Exists"}],
    }


def _clients(context: Context) -> list[PolicyRule]:
    """Return the rule of those who may send requests; none if nobody may.

    Of the peers that the spec names, those that the installation does not allow are left out, each by itself: the
    others go on.
    """
    named = context.spec.serving.network_policy
    ports = (HTTP_PORT, GRPC_PORT)
    if named is None:
        return [_from(context.settings.clients, *ports)]
    peers = [each.body() for each in named.peers]
    allowed = [each for each in peers if context.settings.allows_client(context.namespace, each)]
    return [_from(allowed, *ports)] if allowed else []


def _from(peers: Sequence[PolicyPeer], *ports: int) -> Body:
    """Return the rule that lets peers reach ports. To Kubernetes, a rule without peers is one for everybody."""
    return ({"from": list(peers)} if peers else {}) | {"ports": _ports(*ports)}


def _ports(*ports: int) -> list[Body]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def _policy(context: Context, name: str, component: str, rules: _Rules) -> Body:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(name, component),
        # An empty list that is said can be put back; one that is not would be anybody's to fill.
        "spec": {
            "podSelector": rules.selector,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [dict(rule) for rule in rules.ingress],
            "egress": [dict(rule) for rule in rules.egress],
        },
    }
