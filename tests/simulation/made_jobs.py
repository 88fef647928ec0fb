"""The Jobs that a cluster of the simulation has: their pods, and what they are asked."""

import hashlib
import json
from typing import Any

from tests.simulation.cluster import Cluster
from triton_operator.policy_rules import PolicyRule

Body = dict[str, Any]
WEB: PolicyRule = {"ports": [{"protocol": "TCP", "port": 443}]}
"""What downloads may reach."""


def sha256(uri: str) -> str:
    """The digest that the simulation's Jobs answer with."""
    return hashlib.sha256(uri.encode()).hexdigest()


def jobs(cluster: Cluster, stage: str) -> list[Body]:
    """The pod templates of a stage's Jobs."""
    return [
        job["spec"]["template"]
        for job in cluster.of_kind("Job")
        if job["metadata"]["labels"]["triton-operator.dev/stage"] == stage
    ]


def request(job: Body) -> Body:
    """The request that a pod is given."""
    found: Body = json.loads(job["spec"]["containers"][0]["args"][-1])
    return found
