"""Look for the requirements files, and leave them for pip, with the pip to use."""

import shutil
from pathlib import Path

import certifi
import packaging
import pip
import urllib3

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

    Raises StageError: InputMissing (no source), ResultMissing (a file is not what was published), RequirementsInvalid.
    """
    source = published_source(request.source)
    for number, each in enumerate(request.files):
        file = source / each.path
        if not file.is_file() or sha256_of(SourceFile(each.path, file)) != each.sha256:
            message = f"{each.path} on the repository claim is not what was published"
            raise StageError(Reason.RESULT_MISSING, message, final=False)
        requirements_file.read(file, each.path)
        shutil.copyfile(file, incoming / REQUIREMENTS.format(number))
    if layout.CONVERTERS_MOUNT.is_dir():
        copy_tools(layout.CONVERTERS_MOUNT)
    return (request.key,)


def copy_tools(target: Path) -> None:
    """Copy what ``run`` imports besides our programs into a directory of its import path.

    An older image has a pip that writes wherever a wheel says, and a server's need not have any of them.
    """
    for module in (pip, packaging, certifi, urllib3):
        assert module.__file__ is not None
        folder = Path(module.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, target / folder.name, dirs_exist_ok=True, ignore=ignored)
