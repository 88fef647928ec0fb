"""The paths that the code of Python steps names, in the containers that run it: its folder, and empty directories."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton_operator.api.model import Model
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.resources import pod

Body = dict[str, Any]
SCRATCH = "scratch"
"""Name of the volume with the directories that steps may write to: one volume, so that one limit bounds them all."""


def mounts(spec: TritonDeploymentSpec, folder: Callable[[Model], Path]) -> tuple[Body, ...]:
    """The mounts of a container that runs the code of all steps.

    ``folder``: tells where on the claim the folder of a step's file is.
    """
    folders = ((model.mount_path, folder(model)) for model in spec.models if model.mount_path)
    scratch = sorted({path for model in spec.models for path in model.scratch_paths})
    return (
        *(pod.input_mount(directory) | {"mountPath": path} for path, directory in folders),
        *({"name": SCRATCH, "mountPath": path, "subPath": path.lstrip("/")} for path in scratch),
    )


def volumes(spec: TritonDeploymentSpec, limit: str) -> tuple[Body, ...]:
    """The volume of these mounts, if there is any. ``limit``: the most that all directories together may hold."""
    needed = any(model.scratch_paths for model in spec.models)
    return ({"name": SCRATCH, "emptyDir": {"sizeLimit": limit}},) if needed else ()
