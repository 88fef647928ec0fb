"""A namespace of a benchmark's own, and what it does there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.deploy.command import TargetCluster

Body = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A namespace of a cluster. Every method raises CommandError."""

    cluster: TargetCluster
    namespace: str

    @classmethod
    def fresh(cls, cluster: TargetCluster, namespace: str) -> "Place":
        """The namespace without what an earlier run left in it."""
        cluster.run("kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--timeout=180s")
        cluster.run("kubectl", "create", "namespace", namespace)
        return cls(cluster, namespace)

    def push(self, file: Path, claim: str, path: str) -> None:
        """Copy a file to a path of a claim, which is made if it is missing."""
        push = ("python3", "-m", "triton_plugin", "push", str(file), f"pvc://{claim}/{path}", "--size", "1Gi")
        self.cluster.run(*push, "--namespace", self.namespace)

    def apply(self, body: Body) -> None:
        """Apply an object."""
        where = ("--namespace", self.namespace, "--filename", "-")
        self.cluster.run("kubectl", "apply", *where, stdin=json.dumps(body))

    def wait(self, subject: str, what: str, seconds: int) -> None:
        """Wait for a condition of an object, KIND/NAME."""
        options = ("--namespace", self.namespace, f"--for={what}", f"--timeout={seconds}s")
        self.cluster.run("kubectl", "wait", subject, *options, timeout=seconds + 60)

    def get(self, kind: str, name: str) -> Body:
        """Return an object."""
        found: Body = self.cluster.get(kind, name, "--namespace", self.namespace)
        return found

    def http_address(self, service: str) -> str:
        """Return HOST:PORT of a Service's port for Triton's HTTP protocol, as this machine reaches it."""
        return f"{self.get('service', service)['spec']['clusterIP']}:8000"
