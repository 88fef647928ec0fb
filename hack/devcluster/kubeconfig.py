"""Kubeconfig files: written for our own processes, read to see whether somebody named a cluster."""

import base64
import json
import os
from pathlib import Path

from hack.devcluster.paths import ClusterPaths


def write_kubeconfig(path: Path, *, server: str, certificates: Path, identity: str) -> None:
    """Write a kubeconfig that holds everything it needs, readable by its owner only.

    `identity` names the certificate in `certificates`, `server` is the API server's URL.
    """

    def encoded(name: str) -> str:
        return base64.b64encode((certificates / name).read_bytes()).decode()

    user = {
        "client-certificate-data": encoded(f"{identity}.crt"),
        "client-key-data": encoded(f"{identity}.key"),
    }
    cluster = {"server": server, "certificate-authority-data": encoded("ca.crt")}
    name = "devcluster"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": identity}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # JSON is YAML; renamed into place so that nobody reads half a file.
    partial = path.with_name(f".{path.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(content, indent=2))
    partial.rename(path)


def foreign_kubeconfig(paths: ClusterPaths) -> str | None:
    """The value of KUBECONFIG when it names a cluster that is not ours."""
    named = os.environ.get("KUBECONFIG", "")
    return named if named and Path(named) != paths.kubeconfig else None
