"""`python3 -m tests.following [mlflow] [schemes]`: follow models on the cluster through good and bad nights.

`mlflow`: fifteen nights of two models; `schemes`: a registry, a hub, a bucket and a web server, with accounts and a
certificate that nobody else trusts. Clients ask all the while; at the end stands what they were answered.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from hack.deploy.environment import set_up
from hack.deploy.install import install
from hack.devcluster.binaries import program
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import cluster_paths
from tests.converters.mlflow_server import serving
from tests.e2e.kubectl import Kubectl
from tests.e2e.outside import Outside, outside
from tests.following import mlflow
from tests.following.followed import Followed
from tests.following.registry import Registry
from tests.following.schemes import live, schemes

NAMESPACE = "following"
PARTS = ("mlflow", "schemes")


def summary(objects: Sequence[Followed]) -> int:
    """Print what became of the requests, and how long versions took; return the exit status."""
    for each in objects:
        middle, most = statistics.median(each.seconds), max(each.seconds)
        print(
            f"{each.name}: {len(each.seconds)} versions, {middle:.0f} s from the look to the answer at the median, "
            f"{most:.0f} at most; {each.prober.answered} requests answered, {len(each.prober.failed)} failed, "
            f"{each.prober.wrong} answered by a version that may not serve"
        )
        print(*each.prober.failed[:5], *each.surprises, sep="\n")
    return int(any(each.prober.failed or each.prober.wrong or each.surprises for each in objects))


def run(part: str, kubectl: Kubectl, servers: Outside, folder: Path, address: str) -> Sequence[Followed]:
    """Live through one part; return its objects."""
    if part == "schemes":
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(partial(live, kubectl), schemes(servers)))
    artifacts = ("--artifacts-destination", f"{folder}/artifacts")
    with serving(folder, folder / "server.pem", servers.authority, *artifacts, address=address) as server:
        return mlflow.run(kubectl, Registry(server))


def main() -> int:
    """Serve the models beside the cluster, and live through the nights."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.following", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="mlflow or schemes; default: both")
    parts = parser.parse_args().parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    assert foreign_kubeconfig(cluster_paths()) is None, "the servers have the node's address: unset KUBECONFIG"
    cluster = set_up()
    kubectl = Kubectl(str(program("kubectl")), cluster.kubeconfig, NAMESPACE)
    addresses = kubectl.items("nodes")[0]["status"]["addresses"]
    address = next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = stack.enter_context(outside(Path(folder), address))
        peer = {"to": [{"ipBlock": {"cidr": f"{address}/32"}}]}
        sources = {"caBundle": servers.authority.read_text(), "hub": f"https://{servers.hub.host}"}
        install(cluster.kubeconfig, {"sources": sources, "networkPolicy": {"sources": {"egress": [peer]}}})
        stack.callback(install, cluster.kubeconfig)
        kubectl.run("create", "namespace", NAMESPACE)
        stack.callback(kubectl.run, "delete", "namespace", NAMESPACE, timeout=300)
        return max(summary(run(part, kubectl, servers, Path(folder), address)) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
