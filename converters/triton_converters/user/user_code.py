"""Import and call user code; every failure becomes a reason with the user's own file and line."""

import argparse
import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.failure import StageError, TerminatedError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.incoming import current
from triton_converters.user import missing, rehearsal, siblings, toolkit
from triton_converters.user.arguments import Offer, harvest

CHECKPOINT_ARGUMENTS = frozenset({"checkpoint", "checkpoint_path", "checkpoint_file", "checkpoint_dir"})
"""Arguments whose value is a path below the source; the function gets the absolute path."""


def call(
    source: Path, entrypoint: Entrypoint, target: str, stage_arguments: Mapping[str, int | str] | None = None
) -> Any:
    """Import the entrypoint's file and call its function or class ``target``; returns the result.

    ``source``: directory of the published source. ``stage_arguments``: values by name, passed if the function takes
    them. Raises StageError: EntrypointInvalid, InvalidSpec, CheckpointInvalid (one of
    CHECKPOINT_ARGUMENTS names no file of the source), UserCodeFailed.
    """
    module = load(source, entrypoint.path)
    function = getattr(module, target, None)
    if not callable(function):
        raise StageError(Reason.ENTRYPOINT_INVALID, f"{entrypoint.path} does not define {target}")
    spec = {name.replace("-", "_"): value for name, value in entrypoint.arguments.items()}
    spec |= {name: _checkpoint(source, name, value) for name, value in spec.items() if name in CHECKPOINT_ARGUMENTS}
    update: Callable[[argparse.ArgumentParser], Any] | None = getattr(module, "update_argparser", None)
    with running(source, entrypoint.path):
        arguments = harvest(function, Offer(spec, stage_arguments or {}), update, f"{entrypoint.path}: {target}")
        return function(**arguments)


def load(source: Path, path: str) -> ModuleType:
    """Import the file ``path`` of the source; a second import returns the same module.

    The file's folder comes first on sys.path, as for a script, and the source's directory comes last: see
    ``siblings.enter``. From the first file on, CUDA falls back to the CPU if the Job has no GPU.
    """
    file = locate(source, path)
    rehearsal.begin()
    toolkit.install(source)
    siblings.enter(source, file.parent)
    # Siblings import it by its stem; a module of that name from elsewhere (such as profile) is not replaced.
    long_name = "_".join(("user", *file.relative_to(source).with_suffix("").parts))
    for name in (file.stem, long_name):
        known = sys.modules.get(name)
        if known is not None and getattr(known, "__file__", None) == str(file):
            return known
    name = long_name if file.stem in sys.modules else file.stem
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        with running(source, path):
            specification.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextmanager
def running(source: Path, path: str, reason: Reason = Reason.USER_CODE_FAILED) -> Iterator[None]:
    """Wrap a call into user code: the source is the working directory, and exceptions become StageErrors.

    The code imports the files next to ``path``, and its sys.argv is that of a script without arguments. What it asks
    NumPy to raise is raised in it alone. An exception becomes ``reason`` with the file and line of the user's innermost
    frame, also one that programs rarely catch, such as asyncio's CancelledError; SystemExit, whatever its code, becomes
    UserCodeFailed too. A StageError passes, and so does the end of a Job that was asked to stop.

    Raises StageError with ``reason`` or UserCodeFailed.
    """
    file = Path(os.path.abspath(source / path))
    argv = sys.argv
    siblings.enter_again(source, file.parent)
    sys.argv = [str(file)]
    try:
        with contextlib.chdir(source), numpy.errstate(), current.running(path):
            yield
    except (StageError, TerminatedError):
        raise
    except SystemExit as error:
        where = location(error, source, path)
        message = f"{where}: the code ended the process with {error.code!r} instead of returning"
        raise StageError(Reason.USER_CODE_FAILED, message) from error
    except BaseException as error:
        traceback.print_exc()
        summary = traceback.format_exception_only(error)[-1].strip()
        advice = missing.advice(error)
        words = f"{error}; {advice}" if advice else summary
        raise StageError(reason, f"{location(error, source, path)}: {words}") from error
    finally:
        sys.argv = argv


def location(error: BaseException, source: Path, path: str) -> str:
    """Return ``file:line`` of the innermost frame in the source; ``path`` if there is none."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(source):
        return f"{Path(error.filename).relative_to(source)}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(os.path.abspath(frame.filename))
        if file.is_relative_to(source):
            return f"{file.relative_to(source)}:{frame.lineno}"
    return path


def locate(source: Path, path: str, kind: Callable[[Path], bool] = Path.is_file, pattern: str = "*.py") -> Path:
    """Return the entrypoint's path, after checking that it is below the source.

    ``kind``: tells whether the path is usable; ``pattern``: the files to list if it is not. Raises
    StageError(EntrypointInvalid).
    """
    file = Path(os.path.abspath(source / path))
    if not file.is_relative_to(source) or not file.resolve().is_relative_to(source.resolve()):
        raise StageError(Reason.ENTRYPOINT_INVALID, f"{path!r} is outside the source")
    if not kind(file):
        files = sorted(str(each.relative_to(source)) for each in source.rglob(pattern))[:10]
        found = ", ".join(map(quoted, files)) or ("no Python file" if pattern == "*.py" else "nothing")
        raise StageError(Reason.ENTRYPOINT_INVALID, f"the source has no file {path!r}; it has: {found}")
    return file


def _checkpoint(source: Path, name: str, value: str) -> str:
    """Return the checkpoint's absolute path: a relative one is below the source, an absolute one ($(DATASET)) stays."""
    file = Path(os.path.abspath(source / value))
    if not Path(value).is_absolute() and not file.is_relative_to(source):
        raise StageError(Reason.INVALID_SPEC, f"{name}: {value!r} is outside the source")
    if not file.exists():
        files = sorted(str(each.relative_to(source)) for each in source.rglob("*") if each.is_file())[:10]
        message = f"{name}: the source has no file {value!r}; it has: {', '.join(map(quoted, files))}"
        raise StageError(Reason.CHECKPOINT_INVALID, message)
    return str(file)
