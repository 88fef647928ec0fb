"""kubectl for tests."""

import json
from pathlib import Path
from typing import Any

from hack.devcluster.binaries import program
from hack.devcluster.commands import run


class Kubectl:
    """kubectl as the administrator of the cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self.argv = [str(program("kubectl")), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        return run([*self.argv, *words], stdin=stdin)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("get", kind, name, "--output=json"))
        return found

    def wait(self, what: str, condition: str, seconds: int = 60) -> None:
        self("wait", what, f"--for={condition}", f"--timeout={seconds}s")
