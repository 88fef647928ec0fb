"""What a hostile program tries in its container; a program of its own, of the standard library alone.

Prints a JSON object: what came of each attempt, which begins with REACHED where it succeeded. What it looks for outside
is in its environment, as JSON.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
Attempt = Callable[[], object]


def call(number: int, *words: object) -> str:
    """Make a system call of x86-64. Raises OSError."""
    found = LIBC.syscall(number, *words)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return str(found)


def written(path: str) -> str:
    """Write to a file what it holds."""
    content = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(content, encoding="utf-8")
    return path


def first(of: "list[str]") -> str:
    """The first of what was found. Raises LookupError if nothing was."""
    if not of:
        raise LookupError("nothing is there")
    return of[0]


def processes(file: str, secret: str) -> str:
    """A file of any process that holds a secret."""
    found = [each for each in Path("/proc").glob(f"[0-9]*/{file}") if secret.encode() in bytes_of(each)]
    return first([str(each) for each in found])


def bytes_of(file: Path) -> bytes:
    """What a file holds; nothing, where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def connected(family: int, address: "str | tuple[str, int]") -> str:
    """Connect to a server."""
    with socket.socket(family, socket.SOCK_STREAM) as asking:
        asking.settimeout(3)
        asking.connect(address)
    return str(address)


def typed(descriptor: int) -> str:
    """Type a character into a terminal (TIOCSTI)."""
    return str(fcntl.ioctl(descriptor, 0x5412, b"x"))


def own_tty() -> str:
    """Type into the terminal of the session."""
    return typed(os.open("/dev/tty", os.O_RDWR))


def signalled(pid: int) -> str:
    """Ask whether a process may be sent a signal."""
    os.kill(pid, 0)
    return str(pid)


def capabilities() -> str:
    """A capability of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return first([each for each in lines if each[:4] in ("CapP", "CapE", "CapA") and int(each.split()[1], 16)])


def as_root() -> str:
    """Have a program that root owns, which runs as root, say who it is."""
    for program in ("/usr/bin/su", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/newgrp"):
        if os.path.exists(program) and os.stat(program).st_mode & 0o4000:
            with subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as run:
                status = Path(f"/proc/{run.pid}/status").read_text(encoding="utf-8")
                run.kill()
            if "NoNewPrivs:\t1" not in status:
                return program
    raise PermissionError("no program gains a privilege")


def beyond(places: Mapping[str, str]) -> "dict[str, Attempt]":
    """The attempts on what lies outside of the container."""
    home, port = places["home"], int(places["port"])
    return {
        # Where the interpreter lies in it, the way there is made.
        "the home folder": lambda: first(
            [each for each in os.listdir(home) if not Path(sys.base_prefix).is_relative_to(Path(home, each))]
        ),
        "another state folder": lambda: first(os.listdir(places["folder"])),
        "the root of this machine": lambda: first(os.listdir("/.old")),
        "a file outside, through a descriptor": lambda: first(
            [each for each in os.listdir("/proc/self/fd/1/..") if each]
        ),
        "descriptors of the engine": lambda: first(
            [link for each in range(3, 256) if os.path.lexists(link := f"/proc/self/fd/{each}")]
        ),
        "passwords of this machine": lambda: first(Path("/etc/shadow").read_text(encoding="utf-8").splitlines()),
        "keys of this machine's certificates": lambda: first(os.listdir("/etc/ssl/private")),
        "Docker's socket": lambda: connected(socket.AF_UNIX, "/run/docker.sock"),
        "variables of the engine": lambda: processes("environ", "TOKEN_OF_" + "THE_ENGINE"),
        "ptrace of the first process": lambda: call(101, 16, 1, 0, 0),
        "processes of this machine": lambda: first(
            [each for each in os.listdir("/proc") if each.isdigit() and int(each) > 64]
        ),
        "a signal to the engine": lambda: signalled(int(places["engine"])),
        "servers of this machine": lambda: connected(socket.AF_INET, ("127.0.0.1", port)),
        "sockets of this machine without a file": lambda: connected(socket.AF_UNIX, "\0" + places["socket"]),
        "a cloud's metadata": lambda: connected(socket.AF_INET, ("169.254.169.254", 80)),
        "other devices of the network": lambda: first([each for _, each in socket.if_nameindex() if each != "lo"]),
        "the host of a virtual machine": lambda: socket.socket(40, socket.SOCK_STREAM),
        "the user's keys": lambda: call(250, 0, -4, 0),
        "a key for others": lambda: call(248, b"user", b"planted", b"x", 1, -4),
        "the terminal of the engine": own_tty,
        **{f"typing into descriptor {each}": partial(typed, each) for each in range(3)},
        "devices": lambda: first(
            sorted({*os.listdir("/dev")} & {"tty", "console", "kmsg", "mem", "vda", "sda", "pts"})
        ),
    }


def within() -> "dict[str, Attempt]":
    """The attempts to gain something within the container."""
    return {
        "a file of the system": lambda: Path("/usr/planted").touch(),
        "a file at the root": lambda: Path("/planted").touch(),
        "a volume that is read-only": lambda: Path("/given/planted").touch(),
        "the mode of a device's file": lambda: os.chmod("/dev/null", os.stat("/dev/null").st_mode & 0o777),
        "the mode of the device it reads from": lambda: os.fchmod(0, os.fstat(0).st_mode & 0o777),
        "a device of its own": lambda: os.mknod("/scratch/disk", 0o60666, os.makedev(254, 0)),
        "a setting of the kernel": lambda: written("/proc/sys/kernel/core_pattern"),
        "the processor that takes interrupts": lambda: written("/proc/irq/default_smp_affinity"),
        "the key that restarts the machine": lambda: Path("/proc/sysrq-trigger").open("w", encoding="utf-8"),
        "a capability": capabilities,
        "root's id": lambda: os.setuid(0),
        "programs that run as root": as_root,
        "a host name": lambda: socket.sethostname("other"),
        "a user namespace": lambda: call(272, 0x10000000),
        "a user namespace by clone": lambda: call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0),
        "a call that no filter sees into": lambda: call(435, ctypes.create_string_buffer(88), 88),
        "a mount": lambda: call(165, b"tmpfs", b"/scratch", b"tmpfs", 0, None),
        "a mount by newer calls": lambda: call(430, b"tmpfs", 0),
        "another root": lambda: os.chroot("/scratch"),
        "a namespace of the first process": lambda: call(308, os.open("/proc/1/ns/net", os.O_RDONLY), 0),
        "a program in the kernel": lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
        "calls by another way": lambda: call(425, 1, ctypes.create_string_buffer(256)),
        "memory of the kernel's faults": lambda: call(323, 1),
        "counters of the processor": lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
        "a module": lambda: call(175, b"", 0, b""),
        "a call of another interface": lambda: call(0x40000000 + 39),
        "a call that is newer than the filter": lambda: call(470),
    }


def came_of(attempt: Attempt) -> str:
    """What came of an attempt."""
    try:
        return f"REACHED {attempt()}"
    except (OSError, LookupError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    tried = {**beyond(json.loads(os.environ["PLACES"])), **within()}
    print("CAME " + json.dumps({name: came_of(attempt) for name, attempt in tried.items()}), flush=True)
    threading.Event().wait(float(os.environ["STAYS"]))
