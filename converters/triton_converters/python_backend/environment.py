"""The interpreter of a Python step in the server, before it loads the user's file: paths, threads, text, the hub.

It is copied next to ``model.py``, and like that runs in the server's Python (3.8 or newer) with nothing of ours.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import locale
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP, SOURCE, PACKAGES = "step.json", "source", "packages"
"""Names next to this file: what is run, the user's folder, and the step's packages."""
DECLARED = "declared"
"""In ``step.json``: the sizes that the spec declares of outputs whose answers have others, by their names."""
COMPLETES = "completes"
"""In ``step.json``: whether the file declares its tensors itself, by ``auto_complete_config``."""
BACKEND, NUMPY = "triton_python_backend_utils", "numpy"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DISTRIBUTION = ("dist-packages", "site-packages")
"""Folders with the image's packages, which differ from image to image, so a step sees none of them but NumPy."""
HUB_PLACES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
"""Variables that name such a folder to these libraries, new and old. HF_HOME would hold the user's token too."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def enter(place: Path, packages: Path, threads: int) -> None:
    """Let the step import its own packages, and none of the image's except for NumPy and what is loaded.

    ``place``: the program's directory; ``packages``: the directory that has them, if there is one. They come last, so
    that they hide neither Python's own modules nor the server's. ``threads``: bounds those of NumPy's libraries; 0: no
    bound. Text is UTF-8 from then on.
    """
    _speak_utf8()
    for name in THREADS if threads else ():
        os.environ.setdefault(name, str(threads))
    sys.path += [str(packages)] if packages.is_dir() else []
    importlib.import_module(NUMPY)
    importlib.import_module(BACKEND)
    sys.meta_path.append(_NumpyMetadata(list(importlib.metadata.distributions(name=NUMPY))[:1]))
    # The backend adds the folder of this file and the one above: a package may be called `guard` or `model`, too.
    ours = (place, place.parent)
    sys.path[:] = [each for each in sys.path if Path(each).name not in DISTRIBUTION and Path(each) not in ours]


def read_hub(folder: Path) -> None:
    """Let the hub's libraries read a folder, if there is one, and ask no server, which they give up after a minute."""
    os.environ.update(OFFLINE)
    if folder.is_dir():
        os.environ.update(dict.fromkeys(HUB_PLACES, str(folder)))


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
