"""Runs programs against one cluster: kubectl, helm, and this tree's own command lines."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.devcluster.binaries import program

ROOT = Path(__file__).resolve().parents[2]


class CommandError(Exception):
    """A program failed; the message holds its argv and the end of what it printed."""


@dataclass(frozen=True)
class TargetCluster:
    """The cluster that a kubeconfig file names."""

    kubeconfig: Path

    def environment(self) -> dict[str, str]:
        """Environment variables for a program that is to use this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *argv: str, stdin: str | None = None, timeout: float = 300, show: bool = False) -> str:
        """Run a program in the root of this tree and return its standard output.

        ``timeout`` in seconds; with ``show`` its error output, where progress goes, is ours.
        Raises CommandError where it fails or takes longer.
        """
        line = " ".join(argv)
        try:
            done = subprocess.run(
                [executable(argv[0]), *argv[1:]],
                cwd=ROOT,
                env=self.environment(),
                input=stdin,
                stdout=subprocess.PIPE,
                stderr=None if show else subprocess.PIPE,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(f"`{line}` did not end within {timeout:g} s") from error
        if done.returncode != 0:
            said = "see above" if show else (done.stderr or done.stdout).strip()[-3000:]
            raise CommandError(f"`{line}` failed with status {done.returncode}: {said}")
        return done.stdout

    def get(self, *argv: str) -> Any:
        """What `kubectl get ... -o json` answers, decoded. Raises CommandError."""
        return json.loads(self.run("kubectl", "get", *argv, "--output", "json"))


def executable(name: str) -> str:
    """A program of the machine, or this Python, or else a program that devcluster builds."""
    if name == "python3":
        return sys.executable
    return shutil.which(name) or str(program(name))
