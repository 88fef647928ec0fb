"""An API of the cluster that a process of this machine answers."""

import base64
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hack.deploy.command import TargetCluster
from hack.devcluster.addresses import NODE_ADDRESS
from hack.devcluster.certificates import Identity, create_authority, create_certificate

Body = dict[str, Any]


def certified(folder: Path, namespace: str, service: str) -> Path:
    """Make the certificate `tls` of a Service, and its authority `ca`; return their folder."""
    certificates = folder / "certificates"
    create_authority(certificates)
    names = ("DNS:localhost", f"DNS:{service}.{namespace}.svc")
    create_certificate(certificates, Identity("tls", service, alternative_names=names))
    return certificates


def start(stack: ExitStack, folder: Path, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start a process that ends with the stack, with its log in NAME.log of the folder."""
    log = stack.enter_context((folder / f"{name}.log").open("wb"))
    process = subprocess.Popen(argv, env=os.environ | environment, cwd=folder, stdout=log, stderr=log)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)


def aggregated(namespace: str, service: str, name: str, port: int, authority: bytes) -> tuple[Body, ...]:
    """What leads the API server to a port of this machine for the APIService ``name``, VERSION.GROUP."""
    place = {"namespace": namespace}
    version, _, group = name.partition(".")
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, **place},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": service, **place, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": port}],
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": service, "namespace": namespace, "port": 443},
                "caBundle": base64.b64encode(authority).decode(),
            },
        },
    )


def is_available(cluster: TargetCluster, name: str) -> bool:
    """Whether the API server passes questions to the APIService on."""
    return holds(cluster, "apiservice", name, "Available")


def holds(cluster: TargetCluster, kind: str, name: str, condition: str) -> bool:
    """Whether an object's condition is True. `kubectl wait` fails at once if there are no conditions yet."""
    conditions = cluster.get(kind, name).get("status", {}).get("conditions") or []
    return any((each["type"], each["status"]) == (condition, "True") for each in conditions)
