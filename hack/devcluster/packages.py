"""Debian packages the cluster and the image builds need, installed only where missing."""

import shutil

from hack.devcluster.commands import run
from hack.devcluster.paths import ClusterError
from hack.progress import step

PACKAGES = (
    "buildah",
    "busybox-static",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "debootstrap",
    "iproute2",
    "iptables",
    "nftables",
    "openssl",
    "runc",
    "socat",
    "util-linux",
)


APT_SECONDS = 900
"""Bound of one call of apt-get, over a slow connection."""


def missing_packages() -> list[str]:
    """The packages of the list that dpkg does not know as installed.

    Raises:
        ClusterError: this is no Debian.

    """
    if shutil.which("dpkg-query") is None:
        raise ClusterError(
            "the cluster is built from Debian packages and this system has no dpkg: "
            "set KUBECONFIG to use a cluster you have"
        )
    return [package for package in PACKAGES if not _installed(package)]


def _installed(package: str) -> bool:
    try:
        return run(["dpkg-query", "--show", "--showformat", "${db:Status-Status}", package]) == "installed"
    except ClusterError:
        return False


def install_packages() -> None:
    """Install what is missing with apt; does nothing, and asks nobody, when all is there.

    Raises:
        ClusterError: apt failed.

    """
    missing = missing_packages()
    if not missing:
        return
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "--no-install-recommends", "-y", *missing]
    with step(f"Debian packages: {' '.join(missing)}", "30 s"):
        run(["apt-get", "update", "-qq"], environment=environment, timeout=APT_SECONDS)
        run(install, environment=environment, timeout=APT_SECONDS)
