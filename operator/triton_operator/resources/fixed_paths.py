"""The paths that the code of Python steps names, in the containers that run it: its folder, and empty directories."""

from collections.abc import Callable
from pathlib import Path

from triton_operator.api.model import Model
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.names import Body
from triton_operator.resources import volumes
from triton_operator.resources.volumes import SCRATCH

WRITABLE = (volumes.SHARED_MEMORY["mountPath"], volumes.TEMPORARY["mountPath"])
"""The directories that the steps of every server may write to."""
_EMPTY = """\
import os, signal, sys
from contextlib import suppress
end = sys.argv.index("--")
paths = sys.argv[1:end]
folders = list(paths)
for folder in folders:
    with suppress(OSError):
        for each in os.scandir(folder):
            with suppress(OSError):
                if each.is_dir(follow_symlinks=False):
                    folders.append(each.path)
                    os.chmod(each.path, 0o700)
                else:
                    os.unlink(each.path)
for folder in reversed(folders[len(paths):]):
    with suppress(OSError):
        os.rmdir(folder)
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
command = sys.argv[end + 1:]
os.execvp(command[0], command)
"""
BEFORE = ["python3", "-I", "-c", _EMPTY]
"""A program that empties the directories that follow, and becomes the command after `--`. It follows no link, runs no
code that lies there (`-I`), and leaves what it cannot remove. Python ignores two signals, the command must not."""


def mounts(spec: TritonDeploymentSpec, folder: Callable[[Model], Path]) -> tuple[Body, ...]:
    """The mounts of a container that runs the code of all steps.

    ``folder``: tells where on the claim the folder of a step's file is.
    """
    folders = ((model.mount_path, folder(model)) for model in spec.models if model.mount_path)
    return (
        *(volumes.input_mount(directory, path) for path, directory in folders),
        *({"name": SCRATCH, "mountPath": path, "subPath": path.lstrip("/")} for path in _scratch(spec)),
    )


def emptying(spec: TritonDeploymentSpec) -> list[str]:
    """The start of a server's argv that empties what its steps may write to; nothing: it has no steps.

    A container that is started again in its pod has the volumes as its predecessor left them, half-written files too,
    and a step that makes a directory would fail for ever.
    """
    return [*BEFORE, *WRITABLE, *_scratch(spec), "--"] if spec.has_steps else []


def _scratch(spec: TritonDeploymentSpec) -> list[str]:
    return sorted({path for model in spec.models for path in model.scratch_paths})


def scratch_volumes(spec: TritonDeploymentSpec, limit: str) -> tuple[Body, ...]:
    """The volume of these mounts, if there is any. ``limit``: the most that all directories together may hold."""
    return (volumes.empty_directory(SCRATCH, limit),) if _scratch(spec) else ()
