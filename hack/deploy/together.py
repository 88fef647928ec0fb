"""Runs command lines of this tree side by side: all of them end well, or the first failure ends them all."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from hack.deploy.command import ROOT, CommandError

POLL_SECONDS = 0.1
GRACE_SECONDS = 10.0
"""How long a program has after SIGTERM before it is killed."""


def together(*commands: Sequence[str]) -> None:
    """Run Python modules with their arguments at the same time; their error output, where progress goes, is ours.

    Whatever way this ends, SIGTERM and Ctrl-C included, no process of theirs is left.
    Raises CommandError for the first that fails.
    """
    with ExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.signal(number, _leave))
        running = {" ".join(command): stack.enter_context(_group(command)) for command in commands}
        while running:
            for line, process in list(running.items()):
                status = process.poll()
                if status is not None:
                    del running[line]
                if status:
                    raise CommandError(f"`python3 -m {line}` failed with status {status}: see above")
            time.sleep(POLL_SECONDS)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


@contextmanager
def _group(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A program in a process group with all that it starts; the group has ended after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + GRACE_SECONDS
            is_there = _signal(process, number)
            while is_there and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
                is_there = _signal(process, 0)


def _signal(process: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal, or none for 0, to the group of a process; whether there is such a group still."""
    process.poll()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True
