"""What tritonserver says when it refuses a model, found in the end of its log. Pure.

The kubelet keeps the last 2 KiB of the log of a container that wrote no termination message. The decisive sentence is
one line of the error log or, where that is cut off, a cell of the table of models. A traceback may follow both.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable

LONGEST_SENTENCE = 400
"""The longest sentence, in characters; a status has room for it."""

_KINDS = (
    (
        "the server hung: ",
        Reason.SERVER_CRASHED,
        "; it is started again; if it hangs again, look for a lock that is never released, or storage that does not"
        " answer (disk sleep)",
    ),
    (
        "not compatible with this version of TensorRT",
        Reason.FORMAT_NOT_SERVED,
        "; build the engine with the server's TensorRT: change spec.conversion.image, or spec.serving.image",
    ),
    (
        "unable to find backend library for backend",
        Reason.FORMAT_NOT_SERVED,
        "; this server's image lacks the backend: use another format or spec.serving.image",
    ),
    (
        "Failed to increase the shared memory pool size",
        Reason.MODEL_LOAD_FAILED,
        "; raise spec.serving.sharedMemorySize",
    ),
    ("Poll failed for model directory", Reason.MODEL_LOAD_FAILED, ""),
    ("failed to load", Reason.MODEL_LOAD_FAILED, ""),
)
"""What the startup probe, tritonserver and TensorRT say, the most specific first; its reason; what to do."""
_PREAMBLE = re.compile(r"^(?:[-\dT:]+Z )?([EWI])(?:\d{4})? [^\]\n]*\] ", re.MULTILINE)
"""The beginning of a line of tritonserver's log, in both of its formats, with the level."""
_NOT_CREATED = "error: creating server"
"""tritonserver's last words if it ends because it cannot start."""
_NO_GPU = "Failed to initialize NVML"
"""What a library says on a machine without a GPU, on a line without a preamble; the server goes on."""
_ENDS = ("At:", "+--", _NOT_CREATED, _NO_GPU)
"""The beginnings of what follows a sentence: a Python backend's frames, a table, the server's last words, noise."""
_UNAVAILABLE = "UNAVAILABLE: "
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Refusal:
    """Why tritonserver refused a model."""

    reason: Reason
    sentence: str
    """tritonserver's own words; empty if the log does not hold them."""
    advice: str
    """What to do, as the end of a message; it may be empty."""


def refusal(log: str) -> Refusal | None:
    """Return why tritonserver refused a model; None if the end of its log says nothing of that."""
    text = printable(log)
    messages = [*_error_messages(text), *_table_messages(text)]
    for phrase, reason, advice in _KINDS:
        line = next((message for message in messages if phrase in message), None)
        if line is not None or phrase in text:
            return Refusal(reason, _sentence(line or ""), advice)
    return None


def could_not_start(log: str) -> bool:
    """Whether tritonserver ended before it was ready."""
    return _NOT_CREATED in log


def is_warning(line: str) -> bool:
    """Whether the line is information or a warning, also one of a library that finds no GPU."""
    preamble = _PREAMBLE.match(line)
    return (preamble is not None and preamble[1] != "E") or line.startswith(_NO_GPU)


def _error_messages(text: str) -> Iterator[str]:
    """Yield the messages of the error log. A newer server escapes each as JSON, an older one writes several lines."""
    parts = _PREAMBLE.split(text)
    for level, message in zip(parts[1::2], parts[2::2], strict=True):
        if level == "E":
            yield _unescaped(message.partition("\n")[0]) if message.startswith('"') else message


def _unescaped(message: str) -> str:
    try:
        return printable(str(json.loads(message)))
    except ValueError:
        return message.strip('"')


def _table_messages(text: str) -> Iterator[str]:
    """Yield the rows of the models that did not load from the table of models, as the error log says them.

    The table breaks a cell's lines at its width, in the middle of words; a line that ends before the width is whole.
    """
    rows: list[list[str]] = []
    for line in text.splitlines():
        before, *cells = line.split("|", 3)
        if before or len(cells) < 3:
            continue
        model, version, status_text = cells[0].strip(), cells[1].strip(), cells[2].rstrip()[1:-2]
        if model or not rows:
            rows.append([f"failed to load '{model}' version {version}: "])
        rows[-1].append(status_text if status_text[-1:].strip() else f"{status_text.rstrip()}\n")
    for heading, *pieces in rows:
        status = "".join(pieces)
        if status.startswith(_UNAVAILABLE):
            yield heading + status.removeprefix(_UNAVAILABLE)


def _sentence(message: str) -> str:
    """The message on one line, without tracebacks."""
    lines = (" ".join(line.split()) for line in message.splitlines())
    parts = [line for line in takewhile(lambda line: not line.startswith(_ENDS), lines) if line]
    for number, line in enumerate(parts):
        if line.endswith(_TRACEBACK):
            parts = [*parts[:number], line.removesuffix(_TRACEBACK).rstrip(), parts[-1]]
            break
    sentence = " ".join(parts)
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[: LONGEST_SENTENCE - 4]} ..."
