"""From a bare machine to a cluster that runs this tree's operator; what the demo and the benchmarks start with."""

from collections.abc import Mapping
from pathlib import Path

from hack.deploy.command import TargetCluster
from hack.deploy.install import IMAGES, install
from hack.deploy.together import together
from hack.devcluster.cluster import set_up_modules
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import cluster_paths
from hack.progress import step

UP_SECONDS = 3600
"""Also for what comes before: another process may hold the cluster while it builds Kubernetes."""


def set_up(*images: str, more: Mapping[str, object] | None = None) -> TargetCluster:
    """The cluster KUBECONFIG names, else the development cluster, with the operator of this tree in it.

    Builds the named images too, for later: compiling Kubernetes leaves the network to the images. ``more``: values of
    the chart besides those that this tree needs.
    Raises CommandError where a step fails, and devcluster.paths.ClusterError where the machine has no place for it.
    """
    paths = cluster_paths()
    foreign = foreign_kubeconfig(paths)
    cluster = TargetCluster(Path(foreign) if foreign else paths.kubeconfig)
    cluster.run("python3", "-m", "hack.devcluster", "prepare", timeout=UP_SECONDS, show=True)
    modules = set_up_modules(foreign=foreign is not None)
    builds = [("hack.imagebuild", "build", *IMAGES, *images)]
    if modules:
        builds.append(("hack.devcluster", "binaries", *modules))
    with step("programs and images, side by side"):
        together(*builds)
    with step("cluster"):
        cluster.run("python3", "-m", "hack.devcluster", "up", timeout=UP_SECONDS, show=True)
    with step("images into the cluster, and the operator"):
        install(cluster.kubeconfig, more)
    return cluster
