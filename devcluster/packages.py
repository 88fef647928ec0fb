"""Debian packages the cluster and the image builds need, installed only where missing."""

import os
import shutil
import subprocess

from devcluster.paths import ClusterError

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
    argv = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *PACKAGES]
    listed = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    installed = {line.split()[0] for line in listed.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in PACKAGES if package not in installed]


def install_packages() -> None:
    """Install what is missing with apt; does nothing, and asks nobody, when all is there.

    Raises:
        ClusterError: apt failed.
    """
    missing = missing_packages()
    if not missing:
        return
    print(f"installing Debian packages: {' '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    steps = (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-qq", "--no-install-recommends", "-y", *missing],
    )
    for argv in steps:
        outcome = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise ClusterError(f"{' '.join(argv)} failed: {outcome.stderr.strip()[-2000:]}")
