"""Look for the requirements file, and leave it for pip, with the pip to use."""

import shutil
from pathlib import Path

import pip

from triton_converters.claim_store.digest import SourceFile, sha256_of
from triton_converters.claim_store.replay import published_source
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.packages import requirements_file
from triton_converters.stages.packages import REQUIREMENTS


def run(request: PackagesRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing.

    Raises StageError: ResultMissing (the file on the claim is not what was published), RequirementsInvalid.
    """
    file = published_source(request.source) / request.path
    if not file.is_file() or sha256_of(SourceFile(request.path, file)) != request.sha256:
        message = f"{request.path} on the repository claim is not what was published"
        raise StageError(Reason.RESULT_MISSING, message, final=False)
    requirements_file.read(file, request.path)
    shutil.copyfile(file, incoming / REQUIREMENTS)
    if layout.CONVERTERS_MOUNT.is_dir():
        _copy_pip(layout.CONVERTERS_MOUNT / "pip")
    return (request.key,)


def _copy_pip(target: Path) -> None:
    """Copy this image's pip: an older image has one that writes wherever a wheel says."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pip.__file__).parent, target, dirs_exist_ok=True, ignore=ignored)
