"""``python3 -m triton_converters run STAGE``: the process that watches over user code. Standard library only.

User code runs in a child. However the child ends, the publisher, which runs next, finds out from the End in
INCOMING_MOUNT; so this process ends with 0, unless it was itself asked to stop, or the kernel killed a process of the
container for memory. It is the first process of its container: when it ends, the kernel ends whatever user code left
running.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_converters.incoming import current, documents, files
from triton_converters.incoming.documents import End

EXIT_TERMINATED = 128 + signal.SIGTERM
EXIT_KILLED = 128 + signal.SIGKILL
CRASHES = (signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals by which a library ends its own process; it does so again for the same graph."""
CONTAINER = "run"
"""The name of this container in the pod."""
LAST_LINES, LAST_CHARACTERS = 8, 700
"""How much of the child's output a message quotes, as of any container that ends without a message."""
DRAIN_SECONDS = 2
"""Longest wait for output that is still in the pipe; a process that user code left may keep it open."""
CGROUP = Path("/sys/fs/cgroup")
_COUNTERS = ("memory.events", "memory/memory.oom_control")
"""Files below CGROUP of version 2, and of version 1."""


class _Child:
    """The process with user code; a signal to this process is passed on to it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = True
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def run(self, command: list[str], lines: deque[bytes]) -> int:
        """Run the command to its end, show what it prints and keep the last lines; returns its exit code."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        assert self.process.stdout is not None
        reader = threading.Thread(target=_show, args=(self.process.stdout, lines), daemon=True)
        reader.start()
        if self.stopped:
            self.stop(signal.SIGTERM, None)
        status = _wait_for(self.process.pid)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        reader.join(DRAIN_SECONDS)
        return status


def run(command: list[str], incoming: Path) -> int:
    """Run the command, if anything is missing, and see to it that its End is written; returns the exit code."""
    child = _Child()
    lines = deque[bytes](maxlen=LAST_LINES)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, child.stop)
    try:
        order = documents.read(incoming, documents.ORDER, documents.Order)
    except StageError as error:
        print(error.message, file=sys.stderr)
        return 0
    if not order.missing:
        print("everything is on the repository claim already", flush=True)
        return 0
    os.environ[current.VARIABLE] = str(incoming / current.NAME)
    before = kills_for_memory()
    code = child.run(command, lines)
    if child.stopped:
        return EXIT_TERMINATED
    if kills_for_memory() > before:
        # The kubelet takes an init container with such a kill for failed. If it ended with 0, the kubelet would start
        # no other container, and the pod would not end either (kuberuntime's isInitContainerFailed).
        return EXIT_KILLED
    if code != 0 or not files.exists(incoming, documents.END):
        end = _end(code, b"".join(lines).decode(errors="replace"), current.read(incoming))
        print(f"{end.reason}: {end.message}", file=sys.stderr, flush=True)
        # Without it the publisher says that nothing was left.
        with suppress(OSError):
            documents.write_end(incoming, end)
    return 0


def kills_for_memory(root: Path = CGROUP) -> int:
    """Return how many processes of this container the kernel killed for memory; 0 if it does not say."""
    for name in _COUNTERS:
        with suppress(OSError):
            if found := re.search(r"^oom_kill (\d+)$", (root / name).read_text(), re.MULTILINE):
                return int(found[1])
    return 0


def _end(code: int, printed: str, running: current.Running) -> End:
    """Return what is known about a child that ended without an End, in the words for any container of a Job."""
    if running.library and code - 128 in CRASHES:
        what = f"{running.library} ended by signal {code - 128} as it {running.verb} {running.path}"
        return End(Reason.FRAMEWORK_FAILED, f"{what}; use another precision, format or opset")
    where = f"pod {os.uname().nodename}, container {CONTAINER}"
    during = f" while {running.path} ran" if running.path else ""
    if code == 0:
        message = f"{where} ended without a result: its program ended{during or ' before the stage was done'}"
        return End(Reason.RESULT_MISSING, message)
    words = " | ".join(line.strip() for line in printable(printed).splitlines() if line.strip())[-LAST_CHARACTERS:]
    end = f"{where} ended with exit code {code}{during}"
    message = f"{end}: {words}" if words else f"{end} and left no message; see its log"
    return End(Reason.CRASHED, message, final=False)


def _wait_for(process: int) -> int:
    """Return the exit code of a child, as shells count; reaps all other processes, as nobody else does."""
    while True:
        found, status = os.wait()
        if found == process:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _show(output: IO[bytes], lines: deque[bytes]) -> None:
    """Pass on what a child prints. A line without an end is passed on in pieces."""
    while line := output.readline(LAST_CHARACTERS):
        lines.append(line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
