"""Records an example at its end, for the documentation's tables and the tests of the reports."""

from typing import Any

import yaml

from examples.example import Example
from hack.deploy.command import TargetCluster
from triton_operator import names

KEPT = ("name", "namespace", "generation", "creationTimestamp")
"""The fields of the metadata that are kept; the API server adds the rest."""


def record(cluster: TargetCluster, example: Example) -> str:
    """Return the TritonDeployment and the ConfigMap of its results as one YAML List. Raises CommandError."""
    wanted = (f"tritondeployment/{example.name}", f"configmap/{names.results(example.name)}")
    items = cluster.get(*wanted, "--namespace", example.namespace)["items"]
    document = {"apiVersion": "v1", "kind": "List", "items": [_stripped(item) for item in items]}
    return yaml.safe_dump(document, sort_keys=False, width=120)


def _stripped(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: item["metadata"][name] for name in KEPT if name in item["metadata"]}
    return {**item, "metadata": metadata}
