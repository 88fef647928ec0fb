"""An API of the cluster that a process of this machine answers."""

import base64
from typing import Any

from hack.deploy.command import TargetCluster
from hack.devcluster.addresses import NODE_ADDRESS

Body = dict[str, Any]


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
    found = cluster.get("apiservice", name)
    conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", [])}
    return conditions.get("Available") == "True"
