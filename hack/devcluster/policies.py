"""NetworkPolicies as an nftables ruleset: test gear, so that policies are seen to work on the development cluster.

Packets are judged after kube-proxy's address translation, so rules see addresses of pods, not of Services. Every packet
between two pods is routed by the host, hence `forward`; what a pod sends to the node (DNS, the API server) is `input`.
What the node sends to a pod passes, because the kubelet's probes must.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any

from hack.devcluster.addresses import POD_GATEWAY, POD_RANGE, POLICY_TABLE

Manifest = Mapping[str, Any]
Labels = Mapping[str, str]
ENDED = ("Succeeded", "Failed")
MAX_COMMENT = 128
"""Bytes that nft takes."""


@dataclass(frozen=True)
class Direction:
    """One direction of traffic as a policy names it, and the header field that holds the other side's address."""

    name: str
    rules: str
    peers: str
    other_side: str

    def isolates(self, policy: Manifest) -> bool:
        """Whether a policy restricts this direction of the pods that it selects."""
        spec = policy["spec"]
        by_default = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return self.name in (spec.get("policyTypes") or by_default)


INGRESS = Direction("Ingress", "ingress", "from", "ip saddr")
EGRESS = Direction("Egress", "egress", "to", "ip daddr")


@dataclass(frozen=True)
class Pod:
    """A pod that has its own address."""

    namespace: str
    name: str
    labels: Labels
    address: str
    ports: Mapping[tuple[str, str], int]
    """(protocol, name) -> number."""


@dataclass(frozen=True)
class Cluster:
    """The pods that have an address, and the labels of the namespaces."""

    pods: Sequence[Pod]
    namespaces: Mapping[str, Labels]


def ruleset(
    policies: Sequence[Manifest], pods: Sequence[Manifest], namespaces: Sequence[Manifest], gateway: str = POD_GATEWAY
) -> str:
    """Return a script for `nft -f` that replaces the whole table in one transaction.

    A pod that is missing here, or that has no address yet, can neither send nor receive. Pods of the host's network are
    not judged. Connections that are established stay. ``gateway``: the node's address as its pods see it.
    """
    labels = {namespace["metadata"]["name"]: namespace["metadata"].get("labels") or {} for namespace in namespaces}
    cluster = Cluster(sorted(filter(None, map(_pod, pods)), key=lambda pod: pod.address), labels)
    ordered = sorted(policies, key=lambda policy: (policy["metadata"]["namespace"], policy["metadata"]["name"]))
    chains, jumps = [], []
    for direction in (EGRESS, INGRESS):
        isolated = [(pod, found) for pod in cluster.pods if (found := _selecting(ordered, pod, direction))]
        chains += [_chain(pod, found, direction, cluster) for pod, found in isolated]
        jumps.append([f"{pod.address} : jump {_chain_name(pod, direction)}" for pod, _ in isolated])
    known = [gateway, *(pod.address for pod in cluster.pods)]
    egress, ingress = (_elements(entries) for entries in jumps)
    return f"""\
add table ip {POLICY_TABLE}
delete table ip {POLICY_TABLE}
table ip {POLICY_TABLE} {{
{"".join(chains)}  set known {{ type ipv4_addr; {_elements(known)}}}
  map egress {{ type ipv4_addr : verdict; {egress}}}
  map ingress {{ type ipv4_addr : verdict; {ingress}}}
  chain forward {{
    type filter hook forward priority filter;
    ct state established,related accept
    ip saddr {POD_RANGE} ip saddr != @known counter drop
    ip daddr {POD_RANGE} ip daddr != @known counter drop
    ip saddr vmap @egress
    ip daddr vmap @ingress
  }}
  chain input {{
    type filter hook input priority filter;
    ct state established,related accept
    ip saddr {POD_RANGE} ip saddr != @known counter drop
    ip saddr vmap @egress
  }}
}}
"""


def _elements(entries: Sequence[str]) -> str:
    """An `elements` clause, or nothing: nft takes no empty list."""
    return f"elements = {{ {', '.join(entries)} }} " if entries else ""


def _pod(manifest: Manifest) -> Pod | None:
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status") or {}
    if spec.get("hostNetwork") or status.get("phase") in ENDED or not status.get("podIP"):
        return None
    sidecars = [each for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"]
    ports = {
        (port.get("protocol", "TCP"), port["name"]): port["containerPort"]
        for container in [*spec["containers"], *sidecars]
        for port in container.get("ports") or []
        if "name" in port
    }
    return Pod(metadata["namespace"], metadata["name"], metadata.get("labels") or {}, status["podIP"], ports)


def _selecting(policies: Sequence[Manifest], pod: Pod, direction: Direction) -> list[Manifest]:
    return [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and direction.isolates(policy)
        and selects(policy["spec"].get("podSelector") or {}, pod.labels)
    ]


def selects(selector: Manifest, labels: Labels) -> bool:
    """Whether a label selector selects what has these labels; an empty one selects everything."""
    wanted = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def _holds(expression: Manifest, labels: Labels) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _chain_name(pod: Pod, direction: Direction) -> str:
    return f"{direction.rules}-{pod.address}"


def _chain(pod: Pod, policies: Sequence[Manifest], direction: Direction, cluster: Cluster) -> str:
    """What one pod may do in one direction: the union of its policies, and itself."""
    matches = [f"{direction.other_side} {pod.address}"]
    for policy in policies:
        for rule in policy["spec"].get(direction.rules) or []:
            matches += _matches(rule, policy["metadata"]["namespace"], pod, direction, cluster)
    comment = f"{pod.namespace}/{pod.name}"[:MAX_COMMENT]
    lines = [*(f"{match} return".strip() for match in matches), f'counter drop comment "{comment}"']
    body = "".join(f"    {line}\n" for line in dict.fromkeys(lines))
    return f"  chain {_chain_name(pod, direction)} {{\n{body}  }}\n"


def _matches(rule: Manifest, namespace: str, pod: Pod, direction: Direction, cluster: Cluster) -> Iterator[str]:
    """The packets that one rule allows, as nft expressions."""
    peers = rule.get(direction.peers) or []
    blocks = [_block(peer["ipBlock"], direction) for peer in peers if "ipBlock" in peer]
    chosen = [each for each in cluster.pods if not peers or _is_peer(each, peers, namespace, cluster)]
    addresses = ", ".join(each.address for each in chosen)
    pods = [f"{direction.other_side} {{ {addresses} }}"] if chosen else []
    others = [*filter(None, blocks), *pods] if peers else [""]
    ports = rule.get("ports") or []
    for port in ports:
        if isinstance(port.get("port"), str):
            yield from _named(port, pod, chosen, others, direction)
        else:
            yield from (f"{other} {_port(port)}".strip() for other in others)
    if not ports:
        yield from others


def _named(
    port: Manifest, pod: Pod, chosen: Sequence[Pod], others: Sequence[str], direction: Direction
) -> Iterator[str]:
    """A port's name is the receiving pod's: each receiver may have another number for it."""
    protocol = port.get("protocol", "TCP")
    if direction is INGRESS:
        number = pod.ports.get((protocol, port["port"]))
        yield from (f"{other} {protocol.lower()} dport {number}".strip() for other in others if number)
        return
    for receiver in chosen:
        number = receiver.ports.get((protocol, port["port"]))
        if number:
            yield f"{direction.other_side} {receiver.address} {protocol.lower()} dport {number}"


def _port(port: Manifest) -> str:
    protocol = port.get("protocol", "TCP").lower()
    if "port" not in port:
        return f"meta l4proto {protocol}"
    last = f"-{port['endPort']}" if "endPort" in port else ""
    return f"{protocol} dport {port['port']}{last}"


def _is_peer(pod: Pod, peers: Sequence[Manifest], namespace: str, cluster: Cluster) -> bool:
    return any(
        "ipBlock" not in peer
        and selects(peer.get("podSelector") or {}, pod.labels)
        and (
            selects(peer["namespaceSelector"], cluster.namespaces.get(pod.namespace, {}))
            if "namespaceSelector" in peer
            else pod.namespace == namespace
        )
        for peer in peers
    )


def _block(block: Manifest, direction: Direction) -> str:
    """Empty for IPv6, which the cluster does not have."""
    networks = [ip_network(cidr, strict=False) for cidr in (block["cidr"], *(block.get("except") or []))]
    if not all(isinstance(network, IPv4Network) for network in networks):
        return ""
    within, *holes = networks
    return " ".join([f"{direction.other_side} {within}", *(f"{direction.other_side} != {hole}" for hole in holes)])
