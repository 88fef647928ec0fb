"""Watches NetworkPolicies, Pods and Namespaces and keeps the node's nftables table at what they say.

    python3 -m hack.devcluster.policy_engine CERTIFICATES GATEWAY

A pod's containers start before the API knows its address, so addresses come from the CNI results, which all nodes write
to one folder of the machine. A pod is cut off until its address is in the table. Only the standard library is used:
`up` runs before any package is installed.
"""

import http.client
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

from hack.devcluster.addresses import API_PORT, CNI_NETWORK, NODE_ADDRESS
from hack.devcluster.commands import run
from hack.devcluster.network import CNI_RESULTS
from hack.devcluster.nodes import Node, network_wrapper
from hack.devcluster.paths import ClusterError
from hack.devcluster.policies import ruleset
from hack.devcluster.process import Daemon

NAME = "network-policies"
"""The process and its certificate."""
MODULE = "hack.devcluster.policy_engine"
POLICIES = "/apis/networking.k8s.io/v1/networkpolicies"
PODS = "/api/v1/pods"
NAMESPACES = "/api/v1/namespaces"
PAUSE = 0.05
"""Seconds between looks at the CNI results: the kubelet takes longer from an address to a pod's first container."""


def policy_engine(node: Node) -> Daemon:
    """Enforces NetworkPolicies on a node, in its own nftables."""
    argv = [sys.executable, "-m", MODULE, str(node.cluster.certificates), node.gateway]
    folder = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return Daemon(node.numbered(NAME), argv, folder, network_wrapper(node.namespace))


class Mirror:
    """All objects of one resource by uid, kept by a thread; `version` counts the changes."""

    def __init__(self, path: str, certificates: Path) -> None:
        self.path = path
        self.certificates = certificates
        self.objects: dict[str, Any] = {}
        self.version = 0
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            try:
                self._list_and_watch()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                print(f"{self.path}: {error!r}, listing again", flush=True)
                time.sleep(1)

    def _list_and_watch(self) -> None:
        listing = json.loads(b"".join(self._get(self.path)))
        self._replace({found["metadata"]["uid"]: found for found in listing["items"]})
        since = listing["metadata"]["resourceVersion"]
        for line in self._get(f"{self.path}?watch=1&resourceVersion={since}"):
            event = json.loads(line)
            found = event["object"]
            if event["type"] == "ERROR":
                raise ValueError(found.get("message"))
            others = {uid: each for uid, each in self.objects.items() if uid != found["metadata"]["uid"]}
            self._replace(others if event["type"] == "DELETED" else {**others, found["metadata"]["uid"]: found})

    def _replace(self, objects: dict[str, Any]) -> None:
        """The main thread reads without a lock, so a dictionary once published never changes."""
        self.objects = objects
        self.version += 1

    def _get(self, path: str) -> Iterator[bytes]:
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        context.load_cert_chain(*(str(self.certificates / f"{NAME}.{part}") for part in ("crt", "key")))
        connection = http.client.HTTPSConnection(NODE_ADDRESS, API_PORT, context=context)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise http.client.HTTPException(f"{response.status} {response.reason}")
            yield from response
        finally:
            connection.close()


class Attachments:
    """The addresses that CNI gave to the pods."""

    def __init__(self, results: Path = CNI_RESULTS) -> None:
        self.results = results
        self._read: dict[Path, tuple[str, str] | None] = {}

    def addresses(self) -> dict[str, str]:
        """Pod uid -> address; a file is read until it is whole, and then never again."""
        present = list(self.results.iterdir()) if self.results.is_dir() else []
        self._read = {path: self._read.get(path) or _attachment(path) for path in present}
        return {uid: address for uid, address in filter(None, self._read.values()) if address}


def _attachment(path: Path) -> tuple[str, str] | None:
    """A pod's uid and its address, both empty for other networks and loopback; None for half a file."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if content.get("networkName") != CNI_NETWORK:
        return "", ""
    (entry,) = content["result"]["ips"]
    return dict(content["cniArgs"])["K8S_POD_UID"], str(ip_interface(entry["address"]).ip)


def with_address(pod: Mapping[str, Any], known: Mapping[str, str]) -> Mapping[str, Any]:
    """The pod with the address that it has now: the API learns it late, and forgets it late."""
    return {**pod, "status": {**(pod.get("status") or {}), "podIP": known.get(pod["metadata"]["uid"])}}


def main(certificates: Path, gateway: str) -> None:
    """Load a ruleset when it differs from the loaded one; never returns."""
    mirrors = [Mirror(path, certificates) for path in (POLICIES, PODS, NAMESPACES)]
    attachments = Attachments()
    seen: object = None
    loaded = ""
    while True:
        time.sleep(PAUSE)
        versions, addresses = [mirror.version for mirror in mirrors], attachments.addresses()
        if not all(versions) or seen == (versions, addresses):
            continue
        seen = versions, addresses
        policies, pods, namespaces = (list(mirror.objects.values()) for mirror in mirrors)
        wanted = ruleset(policies, [with_address(pod, addresses) for pod in pods], namespaces, gateway)
        if wanted == loaded:
            continue
        try:
            run(["nft", "-f", "-"], stdin=wanted)
            loaded = wanted
        except ClusterError as error:
            print(f"the old rules stay: {error}\n{wanted}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
