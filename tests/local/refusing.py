"""`refusing.py MACHINE PROGRAM...`: run a program as on a machine that refuses what containers need; x86-64 alone.

It needs the standard library alone, and no root.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
# From linux/prctl.h, linux/seccomp.h, linux/bpf_common.h, linux/sched.h and linux/mount.h.
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NEW_NS, NEW_USER = 0x20000, 0x10000000
PRIVATE = 1 << 18 | 16384
UNSHARE, MOUNT, PIVOT_ROOT = 272, 165, 155
"""The numbers of system calls on x86-64."""


class Program(ctypes.Structure):
    """A struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def check(result: int) -> None:
    """Raise OSError if a call failed."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def without(call: int) -> None:
    """Have a system call fail from now on, as under a filter of a container or AppArmor."""
    steps = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    program = Program(len(steps), b"".join(struct.pack("HBBI", *each) for each in steps))
    check(LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    check(LIBC.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0))


def as_root_of_its_own(namespaces: int) -> None:
    """Become root of a new user namespace."""
    user, group = os.geteuid(), os.getegid()
    check(LIBC.unshare(NEW_USER | namespaces))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def none_left() -> None:
    """Have no user namespace left to make."""
    as_root_of_its_own(0)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def masked() -> None:
    """Hide a part of /proc, as container engines do: the kernel then lets nobody below mount a /proc anew."""
    as_root_of_its_own(NEW_NS)
    check(LIBC.mount(None, b"/", None, PRIVATE, None))
    check(LIBC.mount(b"tmpfs", b"/proc/scsi" if Path("/proc/scsi").exists() else b"/proc/sys", b"tmpfs", 0, None))


MACHINES: dict[str, Callable[[], None]] = {
    "no-namespaces": partial(without, UNSHARE),
    "none-left": none_left,
    # Ubuntu 24.04: a user may have namespaces, and no capability in them.
    "no-mounts": partial(without, MOUNT),
    "no-new-root": partial(without, PIVOT_ROOT),
    "masked-proc": masked,
}


if __name__ == "__main__":
    MACHINES[sys.argv[1]]()
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the arguments are the program
