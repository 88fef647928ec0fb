"""A container in namespaces of an ordinary user; a program of its own, of the standard library alone.

``box.py pod NETWORK USER``: hold the user and network namespaces of a pod until standard input ends.
``box.py run FILE``: run one container, as the JSON of the file says, in the namespaces of its pod.
``box.py exec FILE -- ARGV...``: run a program in the container that was started with the same file.
``box.py trial USER``: do once what all of these need; ends with 1 and the reason where the machine refuses it.
``box.py plain FILE ARGV...``: become a program that is isolated in nothing, but ends with the engine.

The root is a tmpfs with the image's files, read-only; the program has no capability and gains no privilege. It is the
first process of its namespace, as in a cluster: what it has no handler for does not end it, but SIGKILL. Who ends the
engine ends the box: each process dies with its parent. Why a program could not be started is written into a file.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
# From linux/mount.h, linux/sched.h and linux/prctl.h.
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
DIES_WITH_PARENT, DROP_CAPABILITY, NO_NEW_PRIVILEGES = 1, 24, 38
CAPABILITIES = 64
"""More than there are."""
PIVOT_ROOT = 155
DETACH = 2
FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
NOT_STARTED = 128
START_SECONDS = 10.0
"""How long a container may take until its first process is known."""
DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"fd": "/proc/self/fd", **{f"std{name}": f"/proc/self/fd/{n}" for n, name in enumerate(("in", "out", "err"))}}
"""What /dev has besides devices."""


def check(result: int, what: str) -> None:
    """Raise OSError if a call failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave namespaces of these kinds for new ones."""
    check(LIBC.unshare(flags), "unshare")


def enter(pid: int, kinds: dict[str, int]) -> None:
    """Enter namespaces of a process."""
    opened = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), flag) for name, flag in kinds.items()]
    for descriptor, flag in opened:
        check(LIBC.setns(descriptor, flag), "setns")
        os.close(descriptor)


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Show a file system, or change how one is shown. Raises OSError."""
    words = [None if each is None else each.encode() for each in (source, target, kind, data)]
    check(LIBC.mount(*words[:3], ctypes.c_ulong(flags), words[3]), f"mount {source} on {target}")


def bind(source: str, target: str, read_only: bool) -> None:
    """Show a file or folder at a path, which is made."""
    place = Path(target)
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount(source, target, flags=BIND | REC)
    if read_only:
        # Flags that the system's own mount has may not be taken away.
        kept = os.statvfs(target).f_flag & (NOSUID | NODEV | NOEXEC)
        mount(None, target, flags=BIND | REMOUNT | RDONLY | kept)


def become(user: int, namespaces: int) -> None:
    """Enter new namespaces, as that user of a new user namespace."""
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare(NEW_USER | namespaces)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{user} {outer_group} 1")


def trial(user: int) -> int:
    """Do what a container needs: some systems let a user have namespaces, and nothing in them."""
    try:
        become(user, NEW_NET | NEW_NS | NEW_PID | NEW_IPC | NEW_UTS)
        mount(None, "/", flags=REC | PRIVATE)
        mount("tmpfs", "/tmp", "tmpfs", NOSUID)  # noqa: S108 - of a namespace that ends with this process
    except OSError as error:
        print(error, flush=True)
        return 1
    return 0


def pod(network: str, user: int) -> int:
    """Make the pod's namespaces, say so, and wait."""
    become(user, NEW_NET if network == "alone" else 0)
    if network == "alone":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sh14x", b"lo", 0)
            _, flags = struct.unpack("16sh14x", fcntl.ioctl(control, FLAGS, request))
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))
    print("ready", flush=True)
    sys.stdin.read()
    return 0


def run(spec: dict[str, Any]) -> int:
    """Run a container, and return its exit code."""
    LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    # The root that is made below is this process's root too.
    made = os.open(spec["pid_file"], os.O_CREAT | os.O_WRONLY)
    failure = os.open(spec["failure_file"], os.O_CREAT | os.O_WRONLY)
    enter(spec["pod"], {"user": NEW_USER, **({"net": NEW_NET} if spec["alone"] else {})})
    unshare(NEW_NS | NEW_PID | NEW_IPC | NEW_UTS)
    socket.sethostname(spec["hostname"])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        try:
            make_root(spec)
        except OSError as error:
            os.write(failure, str(error).encode())
            os._exit(NOT_STARTED)
        os.close(reader)
        os.close(writer)
        start(spec, spec["argv"], failure)
    os.close(writer)
    os.read(reader, 1)
    os.write(made, str(child).encode())
    return passed_on(child)


def make_root(spec: dict[str, Any]) -> None:
    """Make the container's files, and nothing else, the root."""
    root = spec["root"]
    mount(None, "/", flags=REC | PRIVATE)
    mount("tmpfs", root, "tmpfs", NOSUID, "mode=755,size=16m")
    for link, target in spec["links"].items():
        Path(root + link).symlink_to(target)
    for each in (*(f"/dev/{name}" for name in DEVICES), *spec["devices"]):
        bind(each, f"{root}{each}", read_only=False)
    for link, target in LINKS.items():
        Path(f"{root}/dev/{link}").symlink_to(target)
    for each in spec["mounts"]:
        bind(each["source"], root + each["target"], each["read_only"])
    for each in ("proc", "tmp", "dev/shm", ".old"):
        Path(root, each).mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        Path(root + spec["directory"]).mkdir(parents=True, exist_ok=True)
    mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC)
    check(LIBC.syscall(PIVOT_ROOT, root.encode(), f"{root}/.old".encode()), "pivot_root")
    os.chdir("/")
    check(LIBC.umount2(b"/.old", DETACH), "umount")
    Path("/.old").rmdir()
    mount(None, "/", flags=BIND | REMOUNT | RDONLY | NOSUID)


def start(spec: dict[str, Any], argv: list[str], failure: int) -> None:
    """Become the program. The user's id is not 0, so that the capabilities go with it.

    ``failure``: the open file that is told why it cannot be.
    """
    LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for number in range(CAPABILITIES):
        LIBC.prctl(DROP_CAPABILITY, number, 0, 0, 0)
    try:
        os.chdir(spec["directory"])
        os.execvpe(argv[0], argv, spec["environment"])  # noqa: S606 - a list of arguments, as the container's spec has it
    except OSError as error:
        os.write(failure, f"{argv[0]}: {error}".encode())
        os._exit(NOT_STARTED)


def passed_on(child: int) -> int:
    """Wait for a process, to which signals are passed on; its exit code, or 128 and the signal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signalled(child, received))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def signalled(child: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(child, number)


def waited_for(file: Path) -> int:
    """The first process of a container, once its root is made."""
    end = time.monotonic() + START_SECONDS
    while not (text := file.read_text() if file.exists() else "") and time.monotonic() < end:
        time.sleep(0.05)
    return int(text)


def namespace(process: str, name: str) -> str:
    """Which namespace of a kind a process is in."""
    return str(Path(f"/proc/{process}/ns/{name}").readlink())


def execute(pid: int, spec: dict[str, Any], argv: list[str]) -> int:
    """Run another program in a container, and return its exit code."""
    LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    kinds = {"user": NEW_USER, "net": NEW_NET, "ipc": NEW_IPC, "uts": NEW_UTS, "pid": NEW_PID, "mnt": NEW_NS}
    # A process is already in the namespaces that it shares with the container, and may not enter its own anew.
    enter(pid, {name: flag for name, flag in kinds.items() if namespace(str(pid), name) != namespace("self", name)})
    child = os.fork()
    if child == 0:
        LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        start(spec, argv, sys.stderr.fileno())
    return passed_on(child)


def main(argv: list[str]) -> int:
    """Do what the arguments say, and return the exit status. Raises SystemExit for others."""
    match argv:
        case ["pod", network, user]:
            return pod(network, int(user))
        case ["run", file]:
            return run(json.loads(Path(file).read_text()))
        case ["exec", file, "--", *words]:
            spec = json.loads(Path(file).read_text())
            return execute(waited_for(Path(spec["pid_file"])), spec, words)
        case ["trial", user]:
            return trial(int(user))
        case ["plain", file, *words]:
            LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
            try:
                os.execvp(words[0], words)  # noqa: S606 - a list of arguments, as the container's spec has it
            except OSError as error:
                Path(file).write_text(f"{words[0]}: {error}")
                return NOT_STARTED
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
