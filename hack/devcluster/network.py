"""The cluster's network on the host: bridge, routes, address translation, CNI; made and removed by name."""

import json
import shutil
from pathlib import Path

from hack.devcluster.addresses import (
    BRIDGE,
    CNI_NETWORK,
    NFT_TABLE,
    NODE_ADDRESS,
    POD_GATEWAY,
    POD_RANGE,
    POLICY_TABLE,
    SERVICE_RANGE,
)
from hack.devcluster.commands import run, succeeds
from hack.devcluster.nodes import Node, leftover_namespaces
from hack.devcluster.paths import ClusterPaths

CNI_PROGRAMS = Path("/usr/lib/cni")
CNI_RESULTS = Path("/var/lib/cni/results")
"""Where libcni keeps the result of every attachment; the folder is compiled into containerd."""
IP_FORWARD = "/proc/sys/net/ipv4/ip_forward"
UPLINK = "uplink"
"""A further node's end of its link to the bridge."""
KUBE_PROXY_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))
MASQUERADE = f"""
table ip {NFT_TABLE} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    ip saddr {POD_RANGE} ip daddr != {POD_RANGE} masquerade
  }}
}}
"""


def create_network(node: Node) -> None:
    """Make the node's address, the way to services and to the outside, and the CNI configuration.

    The machine comes first. A further node is linked to its bridge, and reaches everything through it.

    Raises:
        ClusterError: ip or nft failed.

    """
    if node.is_machine:
        run(["ip", "link", "add", BRIDGE, "type", "bridge"])
        run(["ip", "address", "add", f"{NODE_ADDRESS}/32", "dev", BRIDGE])
        run(["ip", "link", "set", BRIDGE, "up"])
        # Service addresses exist on no interface: kube-proxy rewrites them, once the kernel has a route to try.
        run(["ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE, "src", NODE_ADDRESS])
        run(["nft", "-f", "-"], stdin=MASQUERADE)
    else:
        _link(node)
    run(node.inside("tee", IP_FORWARD), stdin="1\n")
    folder = node.paths.configuration / "cni"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "10-pods.conflist").write_text(json.dumps(_cni_configuration(node), indent=2))


def _link(node: Node) -> None:
    """Make the node's network namespace, its link to the bridge, and the routes of both sides."""
    run(["ip", "netns", "add", node.namespace])
    run(["ip", "link", "add", node.namespace, "type", "veth", "peer", "name", UPLINK, "netns", node.namespace])
    run(["ip", "link", "set", node.namespace, "master", BRIDGE, "up"])
    for command in (
        ["link", "set", "lo", "up"],
        ["address", "add", f"{node.address}/32", "dev", UPLINK],
        ["link", "set", UPLINK, "up"],
        ["route", "add", NODE_ADDRESS, "dev", UPLINK, "src", node.address],
        ["route", "add", "default", "via", NODE_ADDRESS, "dev", UPLINK, "src", node.address],
    ):
        run(node.inside("ip", *command))
    run(["ip", "route", "add", node.address, "dev", BRIDGE, "src", NODE_ADDRESS])
    run(["ip", "route", "add", node.pod_range, "via", node.address, "dev", BRIDGE, "src", NODE_ADDRESS])


def _cni_configuration(node: Node) -> dict[str, object]:
    """Point-to-point links: every packet is routed, so services work between pods without bridge netfilter."""
    addresses = {
        "type": "host-local",
        "dataDir": str(node.paths.cni),
        "ranges": [[{"subnet": node.pod_range, "gateway": node.gateway}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {"cniVersion": "0.4.0", "name": CNI_NETWORK, "plugins": [{"type": "ptp", "ipam": addresses}]}


def remove_network(paths: ClusterPaths) -> None:
    """Remove interfaces, nftables tables and CNI results of this cluster; silent about what is not there.

    Raises:
        ClusterError: ip or nft refused to remove something that is there.

    """
    for namespace in leftover_namespaces():
        run(["ip", "netns", "delete", namespace])
    for link in leftover_links():
        # A pod's link may vanish with its namespace between the listing and here.
        if not succeeds(["ip", "link", "delete", link]) and link in leftover_links():
            run(["ip", "link", "delete", link])
    for family, table in leftover_tables():
        run(["nft", "delete", "table", family, table])
    for path in leftover_cni_results(paths):
        path.unlink(missing_ok=True)


def leftover_links() -> list[str]:
    """Names of the network interfaces that are ours: the bridge, and the host's ends of the links to nodes and pods."""
    if shutil.which("ip") is None:
        return []
    interfaces = json.loads(run(["ip", "-json", "address", "show"]) or "[]")
    return [
        str(interface["ifname"])
        for interface in interfaces
        if interface.get("ifname") == BRIDGE
        or interface.get("master") == BRIDGE
        or any(address.get("local") == POD_GATEWAY for address in interface.get("addr_info", []))
    ]


def leftover_tables() -> list[tuple[str, str]]:
    """(family, name) of the nftables tables that are ours or kube-proxy's.

    kube-proxy's name is fixed; a machine with another kube-proxy has a cluster and needs none of this.
    """
    if shutil.which("nft") is None:
        return []
    ours = {("ip", NFT_TABLE), ("ip", POLICY_TABLE), *KUBE_PROXY_TABLES}
    tables = json.loads(run(["nft", "-j", "list", "tables"]))["nftables"]
    found = [(item["table"]["family"], item["table"]["name"]) for item in tables if "table" in item]
    return [entry for entry in found if entry in ours]


def leftover_cni_results(paths: ClusterPaths) -> list[Path]:
    """Files libcni left for our pods: each names the pod's network namespace, which lies in our folder."""
    if not CNI_RESULTS.is_dir():
        return []
    return [path for path in CNI_RESULTS.iterdir() if f"{paths.containerd_state}/" in path.read_text()]
