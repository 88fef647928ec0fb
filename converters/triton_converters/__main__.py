"""``python3 -m triton_converters STAGE REQUEST_JSON``: run a stage; write its outcome to the termination message.

Exit codes: 0 with a result; EXIT_FINAL for a failure that a repetition cannot fix; 1 for one that it may fix; 143 if
the kubelet asked the process to stop. Only the standard library is imported before the stage is known.
"""

import contextlib
import errno
import importlib
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from triton_converters.claim_store.replay import find_result, has_result, write_result
from triton_converters.contract import layout
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import (
    CleanRequest,
    ConvertRequest,
    MeasureRequest,
    ProfileRequest,
    ReferenceRequest,
    SearchRequest,
    SourceRequest,
)

EXIT_RETRY = 1
EXIT_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Stage:
    """What runs for a stage's name: ``module.run(request) -> result``, imported only when needed."""

    request: type[Document]
    module: str
    directory: Callable[[str], Path] | None
    """Returns the directory of a key's result; None: the stage looks at its input every time."""


STAGES = {
    "source": Stage(SourceRequest, "triton_converters.stages.source", None),
    "reference": Stage(ReferenceRequest, "triton_converters.stages.reference", layout.reference_directory),
    "convert": Stage(ConvertRequest, "triton_converters.stages.convert", layout.revision_directory),
    "profile": Stage(ProfileRequest, "triton_converters.stages.profile", layout.measurement_directory),
    "search": Stage(SearchRequest, "triton_converters.stages.search", layout.measurement_directory),
    "measure": Stage(MeasureRequest, "triton_converters.stages.measure", layout.measurement_directory),
    "clean": Stage(CleanRequest, "triton_converters.stages.clean", None),
}


class TerminatedError(BaseException):
    """SIGTERM or SIGINT arrived; not an Exception, so that user code does not catch it by accident."""


def main(arguments: Sequence[str]) -> int:
    """Run the stage, write the termination message and return the exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _terminate)
    # The pod's user has no entry in /etc/passwd, and torch asks for its name.
    os.environ.setdefault("USER", "converter")
    # With its default, epoll1, a client of gRPC 1.67 was seen to miss a reset connection and wait forever.
    os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")
    try:
        outcome, code = _outcome(arguments)
        message = outcome.to_json()
    except (KeyboardInterrupt, TerminatedError):
        print("the stage was stopped by a signal", file=sys.stderr)
        return EXIT_TERMINATED
    Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(message, encoding="utf-8")
    print(message, flush=True)
    return code


def _outcome(arguments: Sequence[str]) -> tuple[Outcome, int]:
    """Return the envelope and the exit code; every failure is mapped to a reason."""
    name, key = "", ""
    try:
        name, request = _parse(arguments)
        key = str(getattr(request, "key", ""))
        result = _run(name, key, request)
    except StageError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        return Outcome(name, key, None, error.reason, error.message), EXIT_FINAL if error.final else EXIT_RETRY
    except SystemExit as error:
        traceback.print_exc()
        message = f"the user's code ended the process with {error.code!r} at {_where(error)}; let it return instead"
        return Outcome(name, key, None, Reason.USER_CODE_EXITED, message), EXIT_FINAL
    except ModuleNotFoundError as error:
        traceback.print_exc()
        message = (
            f"the image lacks the Python package {error.name}; install it in spec.conversion.pod.image;"
            " docs/converters.md names the packages that every such image needs"
        )
        return Outcome(name, key, None, Reason.CRASHED, message), EXIT_FINAL
    except Exception as error:
        traceback.print_exc()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Outcome(name, key, None, Reason.STORAGE_FULL, _full(error)), EXIT_RETRY
        if isinstance(error, OSError) and _refused_by_claim(error):
            return Outcome(name, key, None, Reason.CLAIM_NOT_WRITABLE, _not_writable(error)), EXIT_FINAL
        message = f"{traceback.format_exception_only(error)[-1].strip()} at {_where(error)}"
        return Outcome(name, key, None, Reason.CRASHED, message), EXIT_RETRY
    return Outcome(name, key, result), 0


def _parse(arguments: Sequence[str]) -> tuple[str, Document]:
    if len(arguments) != 2 or arguments[0] not in STAGES:
        raise StageError(Reason.CRASHED, f"usage: python3 -m triton_converters {{{','.join(STAGES)}}} REQUEST_JSON")
    try:
        return arguments[0], STAGES[arguments[0]].request.from_json(arguments[1])
    except DocumentError as error:
        raise StageError(Reason.CRASHED, f"the request is not one of this version: {error}") from error


def _run(name: str, key: str, request: Document) -> Document:
    """Replay the valid result of the key, or run the stage; write the result unless the stage did."""
    stage = STAGES[name]
    directory = stage.directory(key) if stage.directory else None
    if directory is not None and (found := find_result(directory, name, key)) is not None:
        # A running clean Job leaves alone what was just used; what it has just removed is made again.
        with contextlib.suppress(FileNotFoundError):
            os.utime(directory)
            return found
    result: Document = importlib.import_module(stage.module).run(request)
    if directory is not None and not has_result(directory, name, key):
        write_result(directory, name, key, result)
    return result


def _files(error: OSError) -> list[Path]:
    """Return the files that the error names."""
    return [Path(os.fsdecode(name)) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]


def _refused_by_claim(error: OSError) -> bool:
    """Whether a file of the claim cannot be written; user code may be refused elsewhere."""
    refused = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    return refused and any(name.is_relative_to(layout.MOUNT) for name in _files(error))


def _not_writable(error: OSError) -> str:
    return (
        f"uid {os.getuid()} cannot write to the claim: {error}; use a claim whose volume is not read-only and whose"
        " directory that user may write to"
    )


def _full(error: OSError) -> str:
    """Return a message that names the full mount: the claim, unless the error names only files elsewhere."""
    names = _files(error)
    on_claim = not names or any(name.is_relative_to(layout.MOUNT) for name in names)
    mount = layout.MOUNT if on_claim else names[-1].parent
    try:
        usage = shutil.disk_usage(mount)
        figures = f" ({usage.used / 2**20:.1f} MiB of {usage.total / 2**20:.1f} MiB used)"
    except OSError:
        figures = ""
    return f"no space is left on {mount}{figures}: {error}; enlarge the claim, or delete what is no longer needed"


def _where(error: BaseException) -> str:
    """Return file and line of the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown line"


def _terminate(number: int, frame: FrameType | None) -> None:
    """Unwind once, so that temporary directories and child processes are removed; a second signal ends at once."""
    signal.signal(number, lambda *_: os._exit(EXIT_TERMINATED))
    raise TerminatedError


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and exit handlers of user code can neither delay the exit nor change its code.
    os._exit(code)
