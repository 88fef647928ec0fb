"""Mounts below our folders: listed from the kernel, and removed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.devcluster.commands import run, succeeds


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    point: Path
    kind: str


def mounted(mountinfo: str | None = None) -> list[Mount]:
    """All mounts of this mount namespace in the kernel's order: a mount comes after what it covers."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), before.split()[4])
        found.append(Mount(Path(point), after.split()[0]))
    return found


def mounts_below(folders: Sequence[Path]) -> list[Path]:
    """Mount points at or below the folders, the innermost first."""
    real = [folder.resolve() for folder in folders]
    points = [mount.point for mount in mounted()]
    return [point for point in reversed(points) if any(point.is_relative_to(folder) for folder in real)]


def unmount_below(folders: Sequence[Path]) -> None:
    """Unmount everything at or below the folders.

    Raises:
        ClusterError: umount failed even lazily.

    """
    for point in mounts_below(folders):
        if not succeeds(["umount", point]):
            run(["umount", "--lazy", point])
