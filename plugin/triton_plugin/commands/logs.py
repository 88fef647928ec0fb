"""`kubectl triton logs`."""

import argparse
import subprocess

from triton_converters.contract.stages import STAGES
from triton_operator import names
from triton_plugin.arguments import add_name, cluster
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.terminal import say

LINES = 50
"""How many of the last lines of each container are printed: an exception and what led to it."""
MOST_CONTAINERS = 100
"""More containers than an object's pods have; kubectl follows five by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the object, and whose logs of it."""
    add_name(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--stage", choices=sorted(STAGES), help="only the Jobs of this stage")
    group.add_argument("--server", action="store_true", help="only the servers")
    parser.add_argument("--candidate", metavar="NAME", help="only the Jobs of this candidate")
    parser.add_argument(
        "-p", "--previous", action="store_true", help="of containers that were started again: the log before that"
    )
    parser.add_argument("--since", metavar="TIME", help="only what is newer, such as 5m or 2h")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    parser.add_argument(
        "--tail", type=int, default=LINES, metavar="N", help=f"last lines of each container; -1: all; default: {LINES}"
    )


def run(options: argparse.Namespace) -> Exit:
    """Print the logs by kubectl, each line after its pod and container. Raises SubjectError."""
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
