"""Long-running processes: started detached, recorded, recognised again, and ended for certain."""

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hack.devcluster.paths import ClusterError


@dataclass(frozen=True)
class Daemon:
    """A program to start: its name in records and logs, its argv, and what is added to its environment."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    wrapper: Sequence[str] = ()
    """What starts the program and becomes it, such as nsenter."""


@dataclass(frozen=True)
class Recorded:
    """A started process: enough to tell it from another one that got its number later."""

    name: str
    pid: int
    started: int
    """Clock ticks after boot, field 22 of /proc/PID/stat."""
    argv: Sequence[str]

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return start_time(self.pid) == self.started and command_line(self.pid) == list(self.argv)


def start_time(pid: int) -> int | None:
    """Clock ticks after boot at which a process started, or None when there is none or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def command_line(pid: int) -> list[str]:
    """The argv of a process; empty when it is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [part.decode(errors="replace") for part in raw.split(b"\0")[:-1]]


def start(daemon: Daemon, *, records: Path, logs: Path, die_with_parent: bool = False) -> Recorded:
    """Start a process in its own session with its output in `logs`, and record it in `records`.

    `die_with_parent` has the kernel kill it when the starting thread ends, for processes a test owns.

    Raises:
        ClusterError: the program is missing.

    """
    records.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    argv = list(daemon.argv)
    wrapper = ["setpriv", "--pdeathsig", "KILL", "--"] if die_with_parent else daemon.wrapper
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(logs / f"{daemon.name}.log"), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    line = [*wrapper, *argv]
    try:
        pid = os.posix_spawnp(line[0], line, {**os.environ, **daemon.environment}, file_actions=files, setsid=True)
    except FileNotFoundError as error:
        raise ClusterError(f"{daemon.name}: {line[0]} is not installed") from error
    started = start_time(pid)
    if started is None:
        raise ClusterError(f"{daemon.name} ended at once; {log_tail(logs, daemon.name)}")
    recorded = Recorded(daemon.name, pid, started, argv)
    (records / f"{daemon.name}.json").write_text(json.dumps(asdict(recorded)))
    # The command line is the wrapper's, then for a moment empty, then the program's.
    deadline = time.monotonic() + 5
    while not recorded.alive() and start_time(pid) == started and time.monotonic() < deadline:
        time.sleep(0.005)
    return recorded


def recorded_processes(records: Path) -> list[Recorded]:
    """Every process recorded below a folder, alive or not; unreadable records count as none."""
    found = []
    for path in sorted(records.glob("*.json")):
        try:
            found.append(Recorded(**json.loads(path.read_text())))
        except (ValueError, TypeError):
            path.unlink()
    return found


def log_tail(logs: Path, name: str, lines: int = 5) -> str:
    """The last lines of a process's log, for error messages."""
    path = logs / f"{name}.log"
    if not path.exists():
        return f"no log at {path}"
    return "\n".join([f"end of {path}:", *path.read_text(errors="replace").splitlines()[-lines:]])


def end(processes: Iterable[Recorded], *, grace: float) -> None:
    """End processes: SIGTERM, and SIGKILL after `grace` seconds (at once for 0); returns when they are gone.

    Raises:
        ClusterError: a process survives SIGKILL.

    """
    ours = [process for process in processes if process.alive()]
    if grace > 0:
        _signal(ours, signal.SIGTERM)
        _wait_gone(ours, grace)
    _signal(ours, signal.SIGKILL)
    survivors = _wait_gone(ours, 10)
    if survivors:
        names = ", ".join(f"{process.name} ({process.pid})" for process in survivors)
        raise ClusterError(f"processes survive SIGKILL: {names}: look at /proc/PID/stack")


def _signal(processes: Iterable[Recorded], number: signal.Signals) -> None:
    for process in processes:
        if not _gone(process):
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def _gone(process: Recorded) -> bool:
    """Whether a process has ended; one of our own children is also reaped."""
    try:
        return os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    except ChildProcessError:
        return start_time(process.pid) != process.started


def _wait_gone(processes: Iterable[Recorded], seconds: float) -> list[Recorded]:
    """Wait until processes are gone; returns those that are not after `seconds`."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if not _gone(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if not _gone(process)]
    return left
