"""What a container beside a server leaves of its measurements: perf_analyzer's files, outputs, and the result.

The server runs the model's code, and the client reads what it answers. So nothing of the client's is trusted either.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from triton_converters.claim_store import served_outputs
from triton_converters.claim_store.replay import publish_result
from triton_converters.contract import layout
from triton_converters.contract.document import Document
from triton_converters.incoming import documents, files
from triton_converters.incoming.files import unfit

FOLDER = "measured"
"""Folder of INCOMING_MOUNT with what goes beside the result."""
MOST_FILES = 4096
"""Files in a folder of measurements: far more than a sweep has points."""
_MEASUREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,149}\.(csv|log|json)")
"""A file of perf_analyzer's; those of an ensemble's models begin with the model's name."""

D = TypeVar("D", bound=Document)


def publish(stage: str, key: str, kind: type[D], incoming: Path, judge: Callable[[D, Path], object]) -> D:
    """Publish ``measurements/<key>/`` with the files that the client left, and return the result.

    ``judge``: raises StageError(Crashed) for a result that nobody asked for; it may add files to the directory that is
    to be published. Raises StageError: that with which the client ended; Crashed and StorageFull for what is not
    published.
    """
    documents.check_end(incoming, stage)
    result = documents.read(incoming, documents.RESULT, kind)

    def fill(directory: Path) -> D:
        judge(result, directory)
        files.copy(incoming / FOLDER, measurements_in(incoming, FOLDER), directory)
        return result

    return publish_result(layout.measurement_directory(key), stage, key, kind, fill)


def measurements_in(root: Path, folder: str) -> list[str]:
    """Return the names of perf_analyzer's files in a folder of ``root``; raises StageError(Crashed) for any other."""
    found = [name for name in files.names_in(root, folder, MOST_FILES) if name != served_outputs.FOLDER]
    if wrong := next((name for name in found if not _MEASUREMENT.fullmatch(name)), None):
        raise unfit(root / folder / wrong, "no measurement has such a name")
    return found
