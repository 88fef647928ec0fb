"""The small documents in INCOMING_MOUNT: what is to be done, what came of it, and what the arrays are called.

``prepare`` writes the Order. All others are written beside user code or a server that runs it, so they are read bounded
and strictly, and every value is checked by whoever uses it. Standard library only.
"""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.failure import StageError
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.reasons import Reason
from triton_converters.contract.stages import STAGES
from triton_converters.contract.text import printable, shortened
from triton_converters.incoming import files
from triton_converters.incoming.files import unfit

ORDER, END, DUMP, METRICS, RESULT = "request.json", "outcome.json", "dump.json", "metrics.json", "result.json"
INSTALLED, COMPARISON = "installed.json", "comparison.json"
"""File names, in INCOMING_MOUNT."""
END_LIMIT_BYTES = 16 * 1024
MESSAGE_BYTES = 4 * 1024
"""Longest message of an End, well below END_LIMIT_BYTES however JSON writes it."""
LIMIT_BYTES = 2**20

D = TypeVar("D", bound=Document)
OpenAxes = Mapping[str, tuple[int, ...]]
"""Axes of whole tensors, the batch included, by the tensor's name."""


@dataclass(frozen=True)
class Order(Document):
    """What the container between `prepare` and the publisher has to do."""

    request: Any
    """The stage's request, as JSON."""
    missing: tuple[str, ...]
    """Keys of what is to be made; empty: everything is on the claim already."""


@dataclass(frozen=True)
class End(Document):
    """How that container's work ended; without a reason it is done."""

    reason: Reason | None = None
    message: str = ""
    final: bool = True


@dataclass(frozen=True)
class Names(Document):
    """The tensors of a model, in its own order."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    open_axes: OpenAxes = field(default_factory=dict)
    """The axes whose size the model's own graph leaves open, although every batch may have had the same size there."""
    contradicted: OpenAxes = field(default_factory=dict)
    """The axes of a Python step's outputs that had another size in an answer than declared; all of them where the
    number of dimensions was another."""


@dataclass(frozen=True)
class Leaves(Document):
    """The leaves of a model's trees."""

    reached: int
    """How many the samples reach."""
    total: int


@dataclass(frozen=True)
class Dump(Document):
    """Beside the batches of a reference."""

    names: Names
    members: tuple[Names, ...]
    """The names of an ensemble's models: of its steps in their order, and then of the models that steps ask."""
    seconds: float
    rehearsed: bool = False
    gpu: str = ""
    leaves: Leaves | None = None
    """The leaves of a model of trees; None: it is another one."""
    mixing: str = ""
    """The operator of the model's graph that looks at all samples of a batch together; empty: none is known."""


@dataclass(frozen=True)
class Converted(Document):
    """Beside the files of one conversion."""

    warnings: tuple[str, ...]
    seconds: float
    max_absolute_error: float | None
    rehearsed: bool = False
    gpu: str = ""
    quantized: Quantized | None = None


@dataclass(frozen=True)
class Installed(Document):
    """Beside the modules that pip installed."""

    packages: tuple[str, ...]
    """Each as NAME==VERSION, in the order of their names."""


@dataclass(frozen=True)
class Computed(Document):
    """The metrics of one set of outputs, or why there are none."""

    values: Mapping[str, Any]
    """Numbers by name; None: not finite."""
    message: str = ""
    reason: Reason | None = None
    converted: Mapping[str, Any] = field(default_factory=dict)
    """Metrics of the converted file outside Triton by name, as ``values``; empty: it did not run there."""


@dataclass(frozen=True)
class AllComputed(Document):
    """What the user's MetricsCalculator gave."""

    framework: Computed
    candidates: tuple[Computed, ...]
    """In the request's order."""


@dataclass(frozen=True)
class ComputedMark(Document):
    """The metrics of an earlier revision, or why there are none."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Numbers by name; None: not finite."""
    errors: tuple[Mapping[str, Any], ...] = ()
    """For each candidate, the standard errors by name; None, or missing: not known."""
    noise: Mapping[str, Any] = field(default_factory=dict)
    """``MarkMetrics.noise`` by name; None, or missing: not known."""
    message: str = ""


@dataclass(frozen=True)
class AllCompared(Document):
    """What a comparison computed."""

    samples: int
    marks: tuple[ComputedMark, ...]
    """In the request's order."""
    message: str = ""
    """Why standard errors are missing; empty: none is."""


def write(root: Path, name: str, document: Document) -> None:
    """Write a document whole, in place of anything that has its name; raises OSError."""
    path = root / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    descriptor, temporary = tempfile.mkstemp(dir=root)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(document.to_json())
    # Containers of other images may have another user.
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def write_end(root: Path, end: End) -> None:
    """Write how the work ended; its message is shortened."""
    write(root, END, End(end.reason, shortened(printable(end.message), MESSAGE_BYTES), end.final))


def read(root: Path, name: str, kind: type[D], limit_bytes: int = LIMIT_BYTES) -> D:
    """Return a document; raises StageError(Crashed) if there is none of this kind."""
    try:
        return kind.from_json(files.read_file(root, name, limit_bytes).decode())
    except (UnicodeDecodeError, DocumentError) as error:
        raise unfit(root / name, error) from error


def number(value: Any, digits: int) -> float | None:
    """Return a value of a document with so many significant digits, of which 17 are all; None: it is no number."""
    # A bool is an int to isinstance.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(f"{value:.{digits}g}")


def check_end(root: Path, stage: str) -> None:
    """Raise the StageError with which the work of a stage ended, if it did not succeed.

    A reason that is not that container's to give becomes Crashed, and the work is tried again a few times: what it says
    of the claim, the cluster or a server that the stage does not ask, another container finds out.
    """
    if not files.exists(root, END):
        message = f"the Job's container run left no {END}; see its log"
        raise StageError(Reason.RESULT_MISSING, message, final=False)
    end = read(root, END, End, END_LIMIT_BYTES)
    if end.reason is None:
        return
    message = printable(end.message)
    if end.reason not in STAGES[stage].run_reasons:
        words = f"the Job's container run ended with {end.reason}, which is not for it to say: {message}"
        raise StageError(Reason.CRASHED, words, final=False)
    raise StageError(end.reason, message, final=end.final)


GPU_CHARACTERS = 64
"""Most of a GPU's name that is kept."""


def plain(text: str, limit: int) -> str:
    """Return a text as one line that nothing obeys, at most ``limit`` characters long."""
    return " ".join(printable(text).split())[:limit]


WARNINGS = 4
"""Number of a conversion's warnings that are kept: all must fit into the termination message."""
WARNING_CHARACTERS = 240
"""Most of a warning that is kept: two lines of a terminal."""


def first_warnings(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings of a conversion that are kept."""
    return tuple(plain(line, WARNING_CHARACTERS) for line in islice(lines, WARNINGS))


def amount(value: float) -> float:
    """Return a number of seconds, or another figure that is never negative."""
    return value if math.isfinite(value) and value >= 0 else 0.0


def order_for(request: Document, missing: tuple[str, ...]) -> Order:
    """Return the order to do what is missing for a request."""
    return Order(json.loads(request.to_json()), missing)
