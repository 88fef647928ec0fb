"""The startup probe of every tritonserver: it waits as long as the server makes progress, and ends one that hangs."""

from typing import Any

LONGEST_START_SECONDS = 86400
"""A server that makes progress is never ended. The deadline of the Deployment, or of a Job's pod, decides when to give
up; that of a Deployment can be edited without a new pod."""
STALL_SECONDS = 180
"""How long a server may neither compute nor read before it counts as hung. Storage that moves to another node answers
again after the 90 s for which an NFS server lets clients reclaim their locks; twice that leaves none of them out."""
_WAIT = """\
import os, socket, sys, time
from contextlib import suppress
path, port, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
# Shares of a core: one that waits for a lock takes 0.0003 for each model, as measured, and one that is starved 0.1.
COMPUTES, READS = 0.02 * patience, 2**20
TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

def read(pid, name):
    with suppress(OSError), open(f"/proc/{pid}/{name}", errors="replace") as file:
        return file.read()
    return ""

def look():
    found = {}
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid() and (stat := read(pid, "stat")):
            fields = stat.rpartition(")")[2].split()
            io = dict(line.split(": ") for line in read(pid, "io").splitlines())
            read_bytes = int(io.get("rchar", 0)) + int(io.get("read_bytes", 0)) + int(fields[9]) * PAGE
            found[pid] = (int(fields[11]) + int(fields[12])) / TICK, read_bytes
    return found

def is_ready():
    with suppress(OSError), socket.create_connection(("localhost", port), 5) as server:
        server.sendall(f"GET {path} HTTP/1.0\\r\\n\\r\\n".encode())
        return b" 200 " in server.makefile("rb").readline()

def described(pid):
    state = read(pid, "status").partition("State:")[2].partition("\\n")[0].strip()
    return f"{read(pid, 'comm').strip()} {pid} {state} {read(pid, 'wchan')}"

last, looked, idle, computed, read_bytes = look(), time.monotonic(), 0, 0, 0
while not is_ready():
    time.sleep(1)
    now, then = look(), time.monotonic()
    steps = [[a - b for a, b in zip(now[pid], last.get(pid, (0, 0)))] for pid in now]
    computed += sum(step[0] for step in steps)
    read_bytes += sum(step[1] for step in steps)
    # A node that stood still itself, and this program with it, says nothing of the server.
    idle += min(then - looked, 10)
    last, looked = now, then
    if computed > COMPUTES or read_bytes > READS:
        idle, computed, read_bytes = 0, 0, 0
    elif idle > patience:
        busiest = sorted(now, key=now.get, reverse=True)[:8]
        words = f"the server hung: for {patience:g} s nothing in its container computed or read: "
        words += ", ".join(map(described, busiest))
        with suppress(OSError), open("/dev/termination-log", "w") as file:
            file.write(words)
        sys.exit(words)
"""
_RUN = """\
command -v python3 >/dev/null && exec python3 -I -c "$0" "$@"
echo "the image lacks python3, by which a server's start is watched; change spec.serving.image" >/dev/termination-log
exit 1
"""
WAIT = ["sh", "-c", _RUN, _WAIT]
"""A program that returns once the path that follows answers 200 at the port after it, and fails once no process of its
container has made progress for the seconds after those. What it sees of them is their processor time, what they read,
and their page faults. It then says which processes hung, as the container's last message."""


def start_probe(path: str, port: int) -> dict[str, Any]:
    """The startup probe. ``path``: that of the model's readiness.

    The kubelet starts the program once, and waits for it, so it costs nothing once the server is ready.
    """
    return {
        "exec": {"command": [*WAIT, path, str(port), str(STALL_SECONDS)]},
        "periodSeconds": 1,
        "failureThreshold": 1,
        "timeoutSeconds": LONGEST_START_SECONDS,
    }
