"""What a Python step tries on a server, by group. Standard library only: the tests read the names."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from . import hostile
from .hostile import connect, listing, write

HERE = Path(__file__).resolve().parent
VERSION = HERE.parent
"""The folder with the operator's own program, on a server."""
SHORT = 40
Attempts = dict[str, Callable[[dict[str, str]], object]]


def on_server() -> bool:
    """Whether a server runs this file; the reference, which has it in a source, answers what is right."""
    return Path("/repository/.triton-operator/revisions") in HERE.parents


def other_revisions(addresses: dict[str, str]) -> object:
    """List the revisions of others, which lie next to its own."""
    found = os.listdir("/repository/.triton-operator/revisions")
    if len(found) < 2:
        raise FileNotFoundError(2, "only its own")
    return found


def client(addresses: dict[str, str]) -> object:
    """Look for the process of the program that measures."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = b""
        with suppress(OSError):
            words = path.read_bytes()
        if b"triton_converters" in words or b"perf_analyzer" in words:
            return words[:40]
    raise ProcessLookupError(3, "no client")


def figures(addresses: dict[str, str]) -> object:
    """Look for what the client writes while it measures."""
    found = [path for pattern in ("*.csv", "*.json") for path in Path("/tmp").rglob(pattern)]
    if not found:
        raise FileNotFoundError(2, "no figures")
    return found


def backend(addresses: dict[str, str]) -> object:
    """Write into the module that the backend gives to every step."""
    file = getattr(sys.modules.get("triton_python_backend_utils"), "__file__", None)
    return write(str(file or "/opt/planted.py"))(addresses)


GROUPS: dict[str, Attempts] = {
    "network": {
        **{name: act for name, act in hostile.GROUPS["network"].items() if act is not hostile.listen},
        "a cloud's metadata": connect("metadata"),
    },
    "files": {
        "the ServiceAccount's token": listing("/var/run/secrets/kubernetes.io/serviceaccount"),
        "a credential in the environment": hostile.environment,
        "sources on the claim": listing("/repository/.triton-operator/sources"),
        "references on the claim": listing("/repository/.triton-operator/references"),
        "candidates on the claim": listing("/repository/.triton-operator/candidates"),
        "other revisions on the claim": other_revisions,
        "a file next to its own": write(str(HERE / "planted.py")),
        "the program around it": write(str(VERSION / "model.py")),
        "the program that guards it": write(str(VERSION / "guard.py")),
        "its config.pbtxt": write(str(VERSION.parent / "config.pbtxt")),
        "a model in its repository": lambda _: os.mkdir(VERSION.parent.parent / "planted"),
        "a folder on the claim": lambda _: os.mkdir("/repository/planted"),
        "the backend's module": backend,
        "a program of the image": write("/usr/bin/python3"),
        "a kernel setting": write("/proc/sys/kernel/core_pattern"),
    },
    "figures": {
        "measurements on the claim": listing("/repository/.triton-operator/measurements"),
        "the client's process": client,
        "the client's files": figures,
        "the client's folder": listing("/incoming"),
        "a result in the client's place": write("/incoming/planted"),
    },
    "privileges": hostile.GROUPS["privileges"],
}


def came_of(group: str, addresses: dict[str, str]) -> str:
    """Make the group's attempts; return their outcomes in order, in a form that survives any quoting.

    They are short: the message of a candidate has 480 bytes.
    """
    outcomes = [hostile.outcome(act, addresses).replace("Error", "")[:SHORT] for act in GROUPS[group].values()]
    return f"CAME<{'|'.join(each.translate(str.maketrans('<>|', '   ')) for each in outcomes)}>"
