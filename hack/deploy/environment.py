"""From a bare machine to a cluster that runs this tree's operator; what the demo and the benchmarks start with."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.deploy.command import Cluster
from hack.deploy.install import install
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.paths import cluster_paths

UP_SECONDS = 3600
"""The first start builds Kubernetes from its Go modules."""


def set_up() -> Cluster:
    """The cluster KUBECONFIG names, else the development cluster, with the operator of this tree in it.

    Raises CommandError where a step fails, and devcluster.paths.ClusterError where the machine has no place for it.
    """
    paths = cluster_paths()
    foreign = foreign_kubeconfig(paths)
    cluster = Cluster(Path(foreign) if foreign else paths.kubeconfig)
    with step("cluster"):
        cluster.run("python3", "-m", "hack.devcluster", "up", timeout=UP_SECONDS, show=True)
    with step("images and operator"):
        install(cluster.kubeconfig)
    return cluster


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    start = time.monotonic()
    print(f"{what} ...", flush=True)
    yield
    print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)
