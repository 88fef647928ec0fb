"""What Triton's Python backend loads as a Python step's ``model.py``: the user's file in the server's surroundings.

It is copied next to the step's files, ``step.json`` among them, and runs in the server's Python with nothing of ours
but what lies there. Nothing of ours imports it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import json
import locale
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from triton_converters.python_backend import user_step
else:
    sys.path.append(str(HERE))
    user_step = importlib.import_module("_triton_step")

PATIENCE_SECONDS = 5
"""How long the guard may take to end once it was told to; only its return is waited for."""
NUMPY = "numpy"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DISTRIBUTION = ("dist-packages", "site-packages")
"""Folders with the image's packages, which differ from image to image, so a step sees none of them but NumPy."""


def _enter(packages: Path, threads: int) -> None:
    """Let the step import its own packages, and none of the image's except for NumPy and what is loaded.

    ``packages``: the directory that has them, if there is one. They come last, so that they hide neither Python's own
    modules nor the server's. ``threads``: bounds those of NumPy's libraries; 0: no bound. Text is UTF-8 from then on.
    """
    _speak_utf8()
    for name in THREADS if threads else ():
        os.environ.setdefault(name, str(threads))
    sys.path += [str(packages)] if packages.is_dir() else []
    importlib.import_module(NUMPY)
    importlib.import_module(user_step.BACKEND)
    sys.meta_path.append(_NumpyMetadata(list(importlib.metadata.distributions(name=NUMPY))[:1]))
    # The backend adds the folder of this file and the one above: a package may be called `guard` or `model`, too.
    ours = (HERE, HERE.parent)
    sys.path[:] = [each for each in sys.path if Path(each).name not in DISTRIBUTION and Path(each) not in ours]


def _speak_utf8() -> None:
    """Let the step read and print text as anywhere else: the backend's interpreter takes no locale, and speaks ASCII.

    Names of files stay so: Python fixes their encoding as it starts. What is printed is in the log at once: it keeps
    lines back, too, and loses them if it is killed.
    """
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


class _NumpyMetadata:
    """Tells packages which NumPy there is, whose folder is on no path any more: transformers does not import else."""

    def __init__(self, found: list[importlib.metadata.Distribution]) -> None:
        self._found = found

    def find_spec(self, *_: Any) -> None:
        """Find no module: NumPy is imported already."""

    def find_distributions(self, context: importlib.metadata.DistributionFinder.Context) -> Iterator[Any]:
        """Find NumPy where it is asked for, or all packages are."""
        return iter(self._found if (context.name or NUMPY).lower() == NUMPY else ())


SETTINGS = json.loads((HERE / user_step.STEP).read_text(encoding="utf-8"))
FILES = user_step.StepFiles(HERE / user_step.SOURCE, SETTINGS["file"], HERE / user_step.PACKAGES)
user_step.read_hub(FILES.folder / user_step.HUB)
_enter(FILES.packages, int(SETTINGS["threads"]))


class TritonPythonModel:
    """A step as the backend drives it."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the user's file, and let it initialize. Raises TritonModelException, which refuses the model."""
        name = args["model_name"]
        config = json.loads(args["model_config"])
        try:
            user_step.check_single(name, config)
            loaded = user_step.Loaded(name, FILES)
            written = {**args, "model_config": json.dumps(_as_written(loaded, config))}
            self._step = user_step.RunningStep(loaded, config, written)
        except user_step.StepError as error:
            raise sys.modules[user_step.BACKEND].TritonModelException(str(error)) from error
        self._guard = _guard(args["model_instance_name"])

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request with its response, or with an error that says what is wrong with that response."""
        return self._step.execute(requests)

    def finalize(self) -> None:
        """Let the user's code finish, and then end the guard."""
        try:
            self._step.finalize()
        finally:
            self._guard.communicate(b"x", PATIENCE_SECONDS)


def _as_written(loaded: user_step.Loaded, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the sizes that the author declared, in the spec or by the file itself."""
    if SETTINGS.get(user_step.COMPLETES):
        return loaded.completed({**config, "input": [], "output": []})
    declared = SETTINGS.get(user_step.DECLARED, {})
    outputs = [{**each, "dims": declared.get(each["name"], each["dims"])} for each in config["output"]]
    return {**config, "output": outputs}


def _guard(instance: str) -> subprocess.Popen[bytes]:
    """Start the program that ends the server if this process dies: the server would go on, and fail each request."""
    argv = [sys.executable, "-I", "-S", "-B", str(HERE / "guard.py"), str(os.getppid()), str(os.getpid()), instance]
    # In another session, so that a Ctrl-C for the server does not end the guard alone.
    return subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
