"""A thin, typed kubectl: argv lists, JSON out, errors that carry what kubectl said."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.apiserver.kubectl import BRIEF

Object = dict[str, Any]
DEFAULT_TIMEOUT_SECONDS = 60.0


class KubectlError(AssertionError):
    """kubectl refused; the message is its own."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl against one cluster, in one namespace."""

    program: str
    kubeconfig: Path
    namespace: str = "default"

    def within(self, namespace: str) -> "Kubectl":
        """The same cluster, another namespace."""
        return replace(self, namespace=namespace)

    def argv(self, *arguments: str) -> list[str]:
        """The command line."""
        return [self.program, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments]

    def run(self, *arguments: str, stdin: str | bytes = b"", timeout: float = DEFAULT_TIMEOUT_SECONDS) -> str:
        """Standard output; raises KubectlError where the exit code is not 0."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        argv = self.argv(*arguments)
        done = subprocess.run(
            argv, input=given, capture_output=True, timeout=timeout, check=False, env=os.environ | BRIEF
        )
        if done.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")

    def get(self, *arguments: str) -> Object:
        """One object, or a List, as JSON."""
        found: Object = json.loads(self.run("get", *arguments, "--output=json"))
        return found

    def items(self, *arguments: str) -> list[Object]:
        """The items of a List."""
        listed: list[Object] = self.get(*arguments)["items"]
        return listed

    def exists(self, kind: str, name: str) -> bool:
        """Whether there is such an object."""
        return bool(self.run("get", kind, name, "--ignore-not-found", "--output=name").strip())

    def apply(self, *objects: Object, dry_run: bool = False) -> str:
        """`kubectl apply` of the objects; gives its words ("... created")."""
        arguments = ["apply", "--filename=-", *(["--dry-run=server"] if dry_run else [])]
        return self.run(*arguments, stdin=_as_list(objects))

    def delete(self, kind: str, *names: str, wait: bool = True) -> None:
        """Delete objects; it is no error where there are none."""
        self.run("delete", kind, *names, "--ignore-not-found", f"--wait={str(wait).lower()}", timeout=180)

    def logs(self, pod: str, container: str = "", tail: int = -1) -> str:
        """A pod's log, or why there is none."""
        chosen = [f"--container={container}"] if container else []
        try:
            return self.run("logs", pod, *chosen, f"--tail={tail}")
        except KubectlError as error:
            return str(error)

    def execute(self, pod: str, *command: str, stdin: bytes = b"", timeout: float = DEFAULT_TIMEOUT_SECONDS) -> str:
        """Run a command in a pod."""
        interactive = ["--stdin"] if stdin else []
        return self.run("exec", *interactive, pod, "--", *command, stdin=stdin, timeout=timeout)

    def stream(self, *arguments: str) -> "subprocess.Popen[str]":
        """A kubectl that goes on (a watch); its standard output is a pipe."""
        return subprocess.Popen(
            self.argv(*arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ)
        )


def _as_list(objects: Sequence[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
