"""A container in namespaces of an ordinary user; a program of its own, of the standard library alone.

``box.py pod NETWORK USER``: hold the user and network namespaces of a pod until standard input ends; ask on their
loopback device what standard input asks. NETWORK: `own`, `machine`, or the pid of another pod's, whose it shares.
``box.py run FILE``: run one container, as the JSON of the file says, in the namespaces of its pod.
``box.py exec FILE -- ARGV...``: run a program in the container that was started with the same file.
``box.py forward POD ADDRESS FD...``: lead clients of listening sockets to the same ports of an address in the network
of a pod, whose pid it is, until standard input ends. POD 0: the address is the machine's.
``box.py trial USER FOLDER``: do once what all of these need, in an empty folder; ends with 1 and the reason where the
machine refuses it.
``box.py plain ENGINE FILE ARGV...``: run a program that is isolated in nothing, but ends with the engine, whose pid it
is; why it could not be started is written into the file.

The root is a tmpfs with the image's files, read-only; the program has no capability, gains no privilege, and asks the
kernel only for what programs need. It is the first process of its namespace, as in a cluster: a signal that it has no
handler for does not end it, but SIGKILL does. Who ends the engine ends the box: each process dies with its parent.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from errno import ELOOP, ENOSYS, EPERM
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
# From linux/mount.h, linux/sched.h and linux/prctl.h.
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
DIES_WITH_PARENT, DROP_CAPABILITY, TAKES_ORPHANS, NO_NEW_PRIVILEGES = 1, 24, 36, 38
CAPABILITIES = 64
"""More than there are."""
PIVOT_ROOT, SECCOMP, MOUNT_SETATTR = 155, 317, 442
DETACH = 2
FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
NOT_STARTED = 128
"""The exit code of a program that could not be started, as container runtimes report it."""
START_SECONDS = 10.0
"""How long a container may take until its first process is known."""
DEVICES = ("null", "zero", "full", "random", "urandom")
END_AT_ONCE = signal.SIGQUIT
"""The signal by which a program that has not ended after SIGTERM is killed, with all that it has started."""
CHUNK_BYTES = 1 << 16
"""How much of what clients and servers say is read at a time."""
LINKS = 40
"""How many symbolic links a path may have, as in Linux."""
# System calls of x86-64, by arch/x86/entry/syscalls/syscall_64.tbl of Linux 6.18.
LAST_CALL, CLONE3 = 469, 435
REFUSED = {
    "time": (159, 164, 227, 305),  # adjtimex, settimeofday, clock_settime, clock_adjtime
    "files by handles, all of a disk's events": (300, 303, 304),  # fanotify_init, name_to_handle_at, open_by_handle_at
    "keys of the user's sessions": (248, 249, 250),  # add_key, request_key, keyctl
    "memory of the kernel's reach": (279, 312, 323),  # move_pages, kcmp, userfaultfd
    "modules and other kernels": (174, 175, 176, 177, 178, 246, 313, 320),
    # pivot_root, chroot, mount to open_tree_attr
    "mounts": (155, 161, 165, 166, *range(428, 434), 442, 467),
    "namespaces": (272, 308),  # unshare, setns
    # uselib, ustat, sysfs, vhangup, _sysctl, nfsservctl, lookup_dcookie
    "old calls": (134, 136, 139, 153, 156, 180, 212),
    "programs in the kernel": (298, 321, 425, 426, 427),  # perf_event_open, bpf, io_uring_*
    "the machine": (103, 163, 167, 168, 169, 170, 171, 172, 173, 179, 443),  # syslog, acct, swapon to ioperm, quotactl
}
"""What a program without capabilities may not call: as Docker's and Kubernetes' default (RuntimeDefault) has it.
https://github.com/moby/profiles/blob/main/seccomp/default.json"""
EQUAL, ANY_BIT = 0x15, 0x45
REFUSED_ARGUMENTS = (
    (56, 0, ANY_BIT, 0x7E020000, EPERM),  # clone: new namespaces
    (16, 1, EQUAL, 0x5412, EPERM),  # ioctl: TIOCSTI, which types into a terminal
    (16, 1, EQUAL, 0x541C, EPERM),  # ioctl: TIOCLINUX
    (157, 0, EQUAL, 1, 0),  # prctl: PR_SET_PDEATHSIG, by which a program would outlive the engine, and PyTorch asks
    (41, 0, EQUAL, 40, EPERM),  # socket: AF_VSOCK, which leads to a virtual machine's host from every network namespace
)
"""A call, the number of an argument, what of it is refused, and the error; 0: it is told to be done."""
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    **{f"std{name}": f"/proc/self/fd/{number}" for number, name in enumerate(("in", "out", "err"))},
}
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


def bind(source: str, root: str, target: str, flags: int) -> None:
    """Show a file or folder at a path below the root, which is made; with these flags, as all that is mounted in it."""
    place = within(Path(root), target)
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    elif not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount(source, str(place), flags=BIND | REC)
    attributes = struct.pack("4Q", flags, 0, 0, 0)
    words = AT_FDCWD, str(place).encode(), AT_RECURSIVE, attributes, len(attributes)
    check(LIBC.syscall(MOUNT_SETATTR, *words), f"mount_setattr {place}")


def within(root: Path, path: str) -> Path:
    """Where a path leads once the root is the root: links of an image lead nowhere else. Raises OSError."""
    place, links = root, 0
    parts = [*reversed(PurePosixPath(path).parts)]
    while parts:
        part = parts.pop()
        if part == "/":
            place = root
        elif part == "..":
            place = place.parent if place != root else root
        elif (place / part).is_symlink():
            parts += reversed((place / part).readlink().parts)
            if (links := links + 1) > LINKS:
                raise OSError(ELOOP, os.strerror(ELOOP), path)
        else:
            place = place / part
    return place


def become(user: int, namespaces: int) -> None:
    """Enter new namespaces, as that user of a new user namespace."""
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare(NEW_USER | namespaces)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{user} {outer_group} 1")


def trial(user: int, root: str) -> int:
    """Make a pod and the root of a container: some systems let a user have namespaces, and nothing in them."""
    mounts = [{"source": "/usr", "target": "/usr", "read_only": True}]
    try:
        make_pod("own", user)
        unshare(NEW_NS | NEW_PID | NEW_IPC | NEW_UTS)
        socket.sethostname("trial")
        child = os.fork()
        if child == 0:
            make_root({"root": root, "links": {}, "mounts": mounts, "directory": "/"})
            LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            refuse_calls()
            os._exit(0)
    except OSError as error:
        print(error, flush=True)
        os._exit(1)
    return passed_on(child)


def pod(network: str, user: int) -> int:
    """Make the pod's namespaces, say so, and ask what standard input asks until it ends."""
    make_pod(network, user)
    signal.signal(signal.SIGALRM, late)
    print("ready", flush=True)
    for line in sys.stdin:
        url, timeout = json.loads(line)
        answered = False
        # The socket's timeout is for each read, of which a server may cause any number.
        with suppress(TimeoutError):
            signal.setitimer(signal.ITIMER_REAL, timeout)
            answered = answers(url, timeout)
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(int(answered), flush=True)
    return 0


def late(*_: object) -> None:
    """Raise TimeoutError: the time for an answer is over."""
    raise TimeoutError


def make_pod(network: str, user: int) -> None:
    """Enter the namespaces of a pod. Raises OSError."""
    if network.isdigit():
        enter(int(network), {"user": NEW_USER, "net": NEW_NET})
    else:
        become(user, NEW_NET if network == "own" else 0)
    if network == "own":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sh14x", b"lo", 0)
            _, flags = struct.unpack("16sh14x", fcntl.ioctl(control, FLAGS, request))
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))


def answers(url: str, timeout: float) -> bool:
    """Whether a server answers with success, without a proxy."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=timeout) as answer:
            return bool(200 <= answer.status < 400)
    except (OSError, HTTPException):
        return False


def forward(pod_pid: int, address: str, descriptors: list[int]) -> int:
    """Lead clients of listening sockets to the same ports of an address, until standard input ends."""
    if pod_pid:
        enter(pod_pid, {"user": NEW_USER, "net": NEW_NET})
    # A socket stays in the network that it was made in: clients come from one, and are led to another.
    for each in descriptors:
        threading.Thread(target=let_in, args=(socket.socket(fileno=each), address), daemon=True).start()
    sys.stdin.read()
    return 0


def let_in(listening: socket.socket, address: str) -> None:
    """Lead each client of a listening socket to the same port of an address."""
    while True:
        client, _ = listening.accept()
        threading.Thread(target=lead, args=(client, address), daemon=True).start()


def lead(client: socket.socket, address: str) -> None:
    """Pass on what a client and the server say, until both have said all."""
    with client, suppress(OSError), socket.create_connection((address, client.getsockname()[1])) as server:
        answering = threading.Thread(target=pass_on, args=(server, client), daemon=True)
        answering.start()
        pass_on(client, server)
        answering.join()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass on what one side says, until it has said all or the other is gone."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def ends_with(engine: int, number: int = signal.SIGKILL) -> None:
    """Have this process get a signal when the engine ends; end now if it has ended already."""
    LIBC.prctl(DIES_WITH_PARENT, number, 0, 0, 0)
    if os.getppid() != engine:
        os._exit(NOT_STARTED)


def fork() -> int:
    """Fork a process that dies with this one."""
    own = os.pidfd_open(os.getpid())
    child = os.fork()
    if child == 0:
        LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        # Readable is the descriptor of a process that has ended.
        if select.select([own], [], [], 0)[0]:
            os._exit(NOT_STARTED)
    os.close(own)
    return child


def run(spec: dict[str, Any]) -> int:
    """Run a container, and return its exit code."""
    ends_with(spec["engine"])
    # The root that is made below is this process's root too.
    made = os.open(spec["pid_file"], os.O_CREAT | os.O_WRONLY)
    failure = os.open(spec["failure_file"], os.O_CREAT | os.O_WRONLY)
    enter(spec["pod"], {"user": NEW_USER, **({} if spec["network_of_machine"] else {"net": NEW_NET})})
    unshare(NEW_NS | NEW_PID | NEW_IPC | NEW_UTS)
    socket.sethostname(spec["hostname"])
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        try:
            make_root(spec)
        except OSError as error:
            os.write(failure, str(error).encode())
            os._exit(NOT_STARTED)
        os.close(reader)
        os.close(writer)
        os.close(made)
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
    for each in (f"/dev/{name}" for name in DEVICES):
        # What is read-only of a device is its file, whose mode and owner the user may have to change: root has.
        bind(each, root, each, RDONLY | NOSUID)
    for link, target in DEVICE_LINKS.items():
        Path(f"{root}/dev/{link}").symlink_to(target)
    for each in spec["mounts"]:
        bind(each["source"], root, each["target"], NOSUID | NODEV | (RDONLY if each["read_only"] else 0))
    for each in ("proc", "tmp", "dev/shm", ".old"):
        Path(root, each).mkdir(parents=True, exist_ok=True)
    # Read-only: who is root outside may write to the kernel's settings there, with no capability too.
    mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC | RDONLY)
    check(LIBC.syscall(PIVOT_ROOT, root.encode(), f"{root}/.old".encode()), "pivot_root")
    os.chdir("/")
    check(LIBC.umount2(b"/.old", DETACH), "umount")
    Path("/.old").rmdir()
    # Made from inside: a link of the image leads to no folder of this machine.
    with suppress(OSError):
        Path(spec["directory"]).mkdir(parents=True, exist_ok=True)
    mount(None, "/", flags=BIND | REMOUNT | RDONLY | NOSUID)


def start(spec: dict[str, Any], argv: list[str], failure: int) -> None:
    """Become the program. The user's id is not 0, so that the capabilities go with it.

    ``failure``: the open file that is told why it cannot be.
    """
    LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for number in range(CAPABILITIES):
        LIBC.prctl(DROP_CAPABILITY, number, 0, 0, 0)
    try:
        # The engine's is the machine's own, whose mode and owner root may change.
        own = os.open("/dev/null", os.O_RDWR)
        null = os.fstat(own).st_rdev
        for number in range(3):
            if os.fstat(number).st_rdev == null:
                os.dup2(own, number)
        os.close(own)
        refuse_calls()
        os.chdir(spec["directory"])
        os.execvpe(argv[0], argv, spec["environment"])  # noqa: S606 - a list of arguments, as the container's spec has it
    except (OSError, ValueError) as error:
        os.write(failure, f"{argv[0]}: {error}".encode())
        os._exit(NOT_STARTED)


def refuse_calls() -> None:
    """Refuse what a program without capabilities may not call, from now on. Raises OSError."""
    code = b"".join(filtering())
    kept = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept))
    # Set a filter (1), which does not turn off what makes processors fast (4); see seccomp(2).
    check(LIBC.syscall(SECCOMP, 1, 4, program), "seccomp")


def filtering() -> Iterator[bytes]:
    """Yield the instructions of the filter (linux/filter.h and linux/seccomp.h)."""

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    load, greater, answer = 0x20, 0x25, 0x06
    refused, unknown, allowed = (instruction(answer, each) for each in (0x50000 | EPERM, 0x50000 | ENOSYS, 0x7FFF0000))
    number = instruction(load, 0)
    yield from (instruction(load, 4), instruction(EQUAL, 0xC000003E, if_true=1), unknown, number)
    yield from (instruction(greater, LAST_CALL, if_false=1), unknown)
    # Its flags lie in memory, which no filter sees; the C library then takes clone.
    yield from (instruction(EQUAL, CLONE3, if_false=1), unknown)
    for call in (each for calls in REFUSED.values() for each in calls):
        yield from (instruction(EQUAL, call, if_false=1), refused)
    for call, argument, test, value, error in REFUSED_ARGUMENTS:
        yield from (instruction(EQUAL, call, if_false=4), instruction(load, 16 + 8 * argument))
        yield from (instruction(test, value, if_false=1), instruction(answer, 0x50000 | error), number)
    yield allowed


def passed_on(child: int) -> int:
    """Wait for a process, to which signals are passed on; its exit code, or 128 and the signal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signalled(child, received))
    signal.signal(END_AT_ONCE, lambda *_: signalled(child, signal.SIGKILL))
    while True:
        pid, status = os.wait()
        if pid == child:
            return exit_code(os.waitstatus_to_exitcode(status))


def exit_code(status: int) -> int:
    """The exit code as a kubelet reports it: a signal is 128 and its number."""
    return 128 - status if status < 0 else status


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
    ends_with(spec["engine"])
    if namespace(str(pid), "pid") == namespace("self", "pid"):
        return NOT_STARTED  # The container has ended, and its pid is another process's.
    kinds = {"user": NEW_USER, "net": NEW_NET, "ipc": NEW_IPC, "uts": NEW_UTS, "pid": NEW_PID, "mnt": NEW_NS}
    # A process is already in the namespaces that it shares with the container, and may not enter its own anew.
    enter(pid, {name: flag for name, flag in kinds.items() if namespace(str(pid), name) != namespace("self", name)})
    child = fork()
    if child == 0:
        start(spec, argv, sys.stderr.fileno())
    return passed_on(child)


def plain(engine: int, failure: Path, argv: list[str]) -> int:
    """Run a program, end what it leaves, and return its exit code; the end of the engine is the end of all.

    ``failure``: the file that is told why it cannot be started.
    """
    LIBC.prctl(TAKES_ORPHANS, 1, 0, 0, 0)
    ends_with(engine, END_AT_ONCE)
    child = fork()
    if child == 0:
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - a list of arguments, as the container's spec has it
        except OSError as error:
            failure.write_text(f"{argv[0]}: {error}")
            os._exit(NOT_STARTED)
    code = passed_on(child)
    while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for each in left:
            signalled(int(each), signal.SIGKILL)
        with suppress(ChildProcessError):
            os.wait()
    return code


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
        case ["forward", pod_pid, address, *descriptors]:
            return forward(int(pod_pid), address, [*map(int, descriptors)])
        case ["trial", user, root]:
            return trial(int(user), root)
        case ["plain", engine, file, *words]:
            return plain(int(engine), Path(file), words)
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
