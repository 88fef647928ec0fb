"""`kubectl triton` of this tree, as a process of its own."""

import os
import subprocess
import sys

from tests.e2e.kubectl import Kubectl


def argv(kubectl: Kubectl, command: str, *arguments: str) -> list[str]:
    """The command line, in the namespace of ``kubectl``."""
    return [sys.executable, "-m", "triton_plugin", command, *arguments, "--namespace", kubectl.namespace]


def environment(kubectl: Kubectl) -> dict[str, str]:
    """What it finds the cluster, kubectl and its own modules by."""
    folders = os.pathsep.join([os.path.dirname(kubectl.program), os.environ["PATH"]])
    modules = os.pathsep.join(sys.path)
    return {**os.environ, "KUBECONFIG": str(kubectl.kubeconfig), "PATH": folders, "PYTHONPATH": modules}


def run(kubectl: Kubectl, command: str, *arguments: str, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
    """Run a command; gives what it printed, whatever its exit status is."""
    return subprocess.run(
        argv(kubectl, command, *arguments),
        env=environment(kubectl),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
