"""`kubectl triton logs`."""

import argparse
import subprocess
from pathlib import Path

from triton_operator import names
from triton_plugin.commands.arguments import cluster
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import is_file
from triton_plugin.terminal import say

MOST_CONTAINERS = 100
"""More containers than an object's pods have; kubectl follows five by default."""


def run(options: argparse.Namespace) -> Exit:
    """Print the logs by kubectl, each line after its pod and container. Raises SubjectError."""
    if is_file(options.name):
        pods = Path(options.name).parent / "pods"
        raise SubjectError(f"logs reads a cluster; those of a check are files, {pods}/POD/CONTAINER.log")
    source = cluster(options)
    source.triton_deployment(options.name)
    command = source.kubectl(*arguments(options))
    try:
        # As bytes: in text, a carriage return of a program would begin a line that seems to be another container's.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            for line in process.stdout:
                say(line.decode(errors="replace").rstrip("\r\n"))
    except FileNotFoundError as error:
        raise SubjectError("kubectl is not on the PATH; install it") from error
    return Exit.FAILED if process.returncode else Exit.OK


def arguments(options: argparse.Namespace) -> list[str]:
    """Return what kubectl is asked."""
    return [
        "logs",
        "--selector",
        selector(options.name, options.stage, options.candidate, options.server),
        "--all-containers",
        "--prefix",
        "--ignore-errors",
        f"--max-log-requests={MOST_CONTAINERS}",
        f"--tail={options.tail}",
        *(["--follow"] if options.follow else []),
        *(["--previous"] if options.previous else []),
        *([f"--since={options.since}"] if options.since else []),
    ]


def selector(name: str, stage: str | None, candidate: str | None, server: bool) -> str:
    """Return the label selector of the pods of an object."""
    labels = {
        names.TRITON_DEPLOYMENT_LABEL: name,
        names.STAGE_LABEL: stage,
        names.CANDIDATE_LABEL: candidate,
        names.COMPONENT_LABEL: "server" if server else None,
    }
    return ",".join(f"{label}={value}" for label, value in labels.items() if value)
