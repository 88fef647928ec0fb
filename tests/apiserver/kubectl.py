"""kubectl, the client that users have: what it accepts and what it says is what is tested."""

import json
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hack.devcluster.binaries import program

BRIEF = {"GOGC": "off"}
"""Variables for a program in Go that ends at once: collecting garbage takes a third of kubectl's time."""


class KubectlError(AssertionError):
    """kubectl ended with an error; the text is what it said."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig and, where it is given, a namespace."""

    kubeconfig: Path
    namespace: str = ""

    def within(self, namespace: str) -> "Kubectl":
        return replace(self, namespace=namespace)

    def __call__(self, *arguments: str, body: Any = None) -> str:
        """Run it with an object or a list of objects as standard input; what it printed. Raises KubectlError."""
        argv = [str(program("kubectl")), f"--kubeconfig={self.kubeconfig}"]
        if self.namespace:
            argv.append(f"--namespace={self.namespace}")
        if isinstance(body, list):
            body = {"apiVersion": "v1", "kind": "List", "items": body}
        # As JSON: PyYAML leaves the text "1e-2" without quotes, and kubectl then reads a number.
        text = None if body is None else json.dumps(body)
        outcome = subprocess.run(
            [*argv, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            env=os.environ | BRIEF,
        )
        if outcome.returncode != 0:
            raise KubectlError(outcome.stderr)
        return outcome.stdout

    def get(self, *arguments: str) -> Any:
        """`kubectl get` as JSON."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The items of a list."""
        found: list[dict[str, Any]] = self.get(*arguments)["items"]
        return found
