"""The paths that a step's code names, for a Job that no kubelet starts.

`python3 -m tests.triton_repositories.fixed_paths ROOT MOUNT... -- COMMAND...` runs a command that sees them, on this
machine: in its own mount namespace, below ROOT, an empty folder in which the machine's root is put together again. So
no path is left at the machine's root. MOUNT is FOLDER:PATH, or FOLDER:PATH:ro.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton_converters.contract import layout

RUNNING = ("reference", "convert")
"""The Jobs that run the code of steps."""
PRIVATE = ("unshare", "--map-root-user", "--mount")
ANYBODY = 0o777
SCRATCH = "scratch"
"""The folder with what steps write."""


def mounts(folder: Path, stage: str, request: Any) -> list[str]:
    """Return a MOUNT for each path of a Job's steps, and make the folders that they write to.

    ``folder``: has the repository claim.
    """
    if stage not in RUNNING:
        return []
    source = folder / "repository" / layout.ROOT.name / "sources" / request.source
    parts = request.model.parts
    found = [f"{(source / each.entrypoint.path).parent}:{each.mount_path}:ro" for each in parts if each.mount_path]
    scratch = sorted({path for each in parts for path in each.scratch_paths})
    return [*found, *(f"{_empty(folder)}:{path}" for path in scratch)]


def seeing(folder: Path, given: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return a program that runs a command of this machine, which sees the mounts; without any, the command."""
    program = [*PRIVATE, sys.executable, "-m", "tests.triton_repositories.fixed_paths"]
    return [*program, str(_empty(folder)), *given, "--", *command] if given else [*command]


def _empty(folder: Path) -> Path:
    (folder / SCRATCH).mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder / SCRATCH))
    made.chmod(ANYBODY)
    return made


def main(arguments: Sequence[str]) -> None:
    """Become the command, below a root that is read-only, as a pod's is."""
    end = arguments.index("--")
    (root, *given), command = arguments[:end], arguments[end + 1 :]
    here = Path.cwd()
    _mount("-t", "tmpfs", "tmpfs", root)
    # The folder that it is in is bound into it, too.
    _mount("--make-unbindable", root)
    for entry in Path("/").iterdir():
        target = Path(root) / entry.name
        if entry.is_symlink():
            target.symlink_to(entry.readlink())
        elif entry.is_dir():
            _bind(entry, target, "rbind")
    for each in given:
        folder, path, *options = each.split(":")
        _bind(Path(folder), Path(root) / path.lstrip("/"), ",".join(["bind", *options]))
    _mount("-o", "remount,ro", root)
    os.chroot(root)
    os.chdir(here)
    os.execv(command[0], command)  # noqa: S606 - it takes no shell


def _bind(folder: Path, target: Path, options: str) -> None:
    target.mkdir(parents=True)
    _mount("-o", options, str(folder), str(target))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
