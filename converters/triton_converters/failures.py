"""Every exception that ends a Job, as a reason with a message. Standard library only."""

import errno
import os
import shutil
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.envelope import FEWER_TENSORS, MessageTooLongError
from triton_converters.contract.failure import StageError, lacks_room
from triton_converters.contract.reasons import Reason
from triton_converters.user import missing


@dataclass(frozen=True)
class Failure:
    """Why a stage failed."""

    reason: Reason
    message: str
    final: bool
    """Whether another try cannot help."""


_NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ)


def failure_of(error: Exception | SystemExit, mount: Path | None = None) -> Failure:
    """Return why a stage ended with this exception, and print the exception.

    ``mount``: where the stage writes its result; None: the claim.
    """
    mount = mount or layout.MOUNT
    if isinstance(error, StageError):
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        return Failure(error.reason, error.message, error.final)
    traceback.print_exception(error)
    if isinstance(error, MessageTooLongError):
        message = f"{error}; it does not fit into a termination message: {FEWER_TENSORS}"
        return Failure(Reason.CRASHED, message, final=True)
    if isinstance(error, SystemExit):
        message = f"the user's code ended the process with {error.code!r} at {_where(error)}; let it return instead"
        return Failure(Reason.USER_CODE_FAILED, message, final=True)
    if isinstance(error, ModuleNotFoundError):
        message = (
            f"the image lacks the Python module {error.name}; add {missing.package(error.name)} to the file of"
            " spec.conversion.requirements, or install it in spec.conversion.image; docs/user-files.md says what every"
            " such image needs"
        )
        return Failure(Reason.CRASHED, message, final=True)
    if isinstance(error, OSError) and lacks_room(error):
        return Failure(Reason.STORAGE_FULL, _full(error, mount), final=False)
    if isinstance(error, OSError) and mount == layout.MOUNT and _refused_by_claim(error):
        return Failure(Reason.CLAIM_UNUSABLE, _not_writable(error), final=True)
    message = f"{traceback.format_exception_only(error)[-1].strip()} at {_where(error)}"
    return Failure(Reason.CRASHED, message, final=_is_about_input(error))


def _is_about_input(error: Exception) -> bool:
    """Whether the same input ends every run so: a name that no file system takes, or what is nested too deep."""
    return isinstance(error, RecursionError) or (isinstance(error, OSError) and error.errno in _NO_NAME)


def _files(error: OSError) -> list[Path]:
    """Return the files that the error names."""
    return [Path(os.fsdecode(name)) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]


def _refused_by_claim(error: OSError) -> bool:
    """Whether a file of the claim cannot be written; user code may be refused elsewhere."""
    refused = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    return refused and any(name.is_relative_to(layout.MOUNT) for name in _files(error))


def _not_writable(error: OSError) -> str:
    with suppress(OSError):
        owner = layout.ROOT.stat().st_uid
        if owner not in (0, os.getuid()):
            return (
                f"uid {os.getuid()} cannot write to the claim, where {layout.ROOT} belongs to uid {owner}: {error}; let"
                " all objects that share the claim have the same spec.pod.runAsUser, or give this one its own claim"
            )
    return (
        f"uid {os.getuid()} cannot write to the claim: {error}; use a claim whose volume is not read-only and whose"
        " directory that user may write to"
    )


def _full(error: OSError, mount: Path) -> str:
    """Return a message that names the full mount: the stage's own, unless the error names only files elsewhere."""
    names = _files(error)
    full = mount if not names or any(name.is_relative_to(mount) for name in names) else names[-1].parent
    try:
        usage = shutil.disk_usage(full)
        figures = f" ({usage.used / 2**20:.1f} MiB of {usage.total / 2**20:.1f} MiB used)"
    except OSError:
        figures = ""
    where = "enlarge the claim" if mount == layout.MOUNT else "enlarge the disk of the node"
    return f"no space is left on {full}{figures}: {error}; {where}, or delete what is no longer needed"


def _where(error: BaseException) -> str:
    """Return file and line of the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown line"
