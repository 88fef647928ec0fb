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
from hack.devcluster.paths import ClusterPaths

CNI_PROGRAMS = Path("/usr/lib/cni")
CNI_RESULTS = Path("/var/lib/cni/results")
"""Where libcni keeps the result of every attachment; the folder is compiled into containerd."""
IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
KUBE_PROXY_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))
MASQUERADE = f"""
table ip {NFT_TABLE} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    ip saddr {POD_RANGE} ip daddr != {POD_RANGE} masquerade
  }}
}}
"""


def create_network(paths: ClusterPaths) -> None:
    """Make the node's address, the way to services and to the outside, and the CNI configuration.

    Raises:
        ClusterError: ip or nft failed.

    """
    run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "address", "add", f"{NODE_ADDRESS}/32", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    # Service addresses exist on no interface: kube-proxy rewrites them, once the kernel has a route to try.
    run(["ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE, "src", NODE_ADDRESS])
    IP_FORWARD.write_text("1\n")
    run(["nft", "-f", "-"], stdin=MASQUERADE)
    folder = paths.configuration / "cni"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "10-pods.conflist").write_text(json.dumps(_cni_configuration(paths), indent=2))


def _cni_configuration(paths: ClusterPaths) -> dict[str, object]:
    """Point-to-point links: every packet is routed, so services work between pods without bridge netfilter."""
    addresses = {
        "type": "host-local",
        "dataDir": str(paths.cni),
        "ranges": [[{"subnet": POD_RANGE, "gateway": POD_GATEWAY}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {"cniVersion": "0.4.0", "name": CNI_NETWORK, "plugins": [{"type": "ptp", "ipam": addresses}]}


def remove_network(paths: ClusterPaths) -> None:
    """Remove interfaces, nftables tables and CNI results of this cluster; silent about what is not there.

    Raises:
        ClusterError: ip or nft refused to remove something that is there.

    """
    for link in leftover_links():
        # A pod's link may vanish with its namespace between the listing and here.
        if not succeeds(["ip", "link", "delete", link]) and link in leftover_links():
            run(["ip", "link", "delete", link])
    for family, table in leftover_tables():
        run(["nft", "delete", "table", family, table])
    for path in leftover_cni_results(paths):
        path.unlink(missing_ok=True)


def leftover_links() -> list[str]:
    """Names of the network interfaces that are ours: the bridge, and the host's ends of pod links."""
    if shutil.which("ip") is None:
        return []
    interfaces = json.loads(run(["ip", "-json", "address", "show"]) or "[]")
    return [
        str(interface["ifname"])
        for interface in interfaces
        if interface.get("ifname") == BRIDGE
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
