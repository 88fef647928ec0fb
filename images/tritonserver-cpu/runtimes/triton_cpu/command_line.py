"""What the server was started with: Triton hands --backend-config to native backends only."""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

PROC = Path("/proc")
FLAG = "--backend-config"


def backend_setting(backend: str, name: str, proc: Path = PROC) -> str | None:
    """The value of --backend-config=BACKEND,NAME=VALUE of the server, this process's nearest ancestor that has it."""
    process = os.getppid()
    while process > 0:
        found = setting(_arguments(process, proc), backend, name)
        if found is not None:
            return found
        process = _parent(process, proc)
    return None


def setting(arguments: Sequence[str], backend: str, name: str) -> str | None:
    """The last value that an argv gives; the flag and its value may be one argument or two."""
    values = [text.partition("=")[2] for text in arguments if text.startswith(f"{FLAG}=")]
    values += [value for flag, value in pairwise(arguments) if flag == FLAG]
    prefix = f"{backend},{name}="
    found = [value.removeprefix(prefix) for value in values if value.startswith(prefix)]
    return found[-1] if found else None


def _arguments(process: int, proc: Path) -> list[str]:
    try:
        return (proc / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _parent(process: int, proc: Path) -> int:
    """The parent's number, 0 where there is none."""
    try:
        # The second field, the command in parentheses, may hold anything.
        fields = (proc / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[1])
