"""The operator's own directory on a claim, and the marker that tells it from one that somebody else made.

The directory appears with its marker at once, so a Job never sees a directory of ours without one. Directories alone,
without a file in them, are nobody's: the next Job that publishes adds the marker.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from triton_converters.claim_store.publish import TEMPORARY_PREFIX, sync, write_file
from triton_converters.contract import layout
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

OWNER = "triton-operator"
LONGEST_NAME = 200
"""Characters of a namespace and a claim that are kept: together they may have 317, and a file's name 255."""
VERSION = 1
"""The layout that ``contract.layout`` describes. A change that this version would misread has another number."""


@dataclass(frozen=True)
class Marker(Document):
    """The marker's content."""

    owner: str
    layout: int


def ensure() -> None:
    """Make the directory if the claim has none, and note the claim in it.

    Raises what ``check`` raises, and OSError if the directory cannot be made.
    """
    if not os.path.lexists(layout.ROOT):
        _make(layout.ROOT)
    if _is_bare(layout.ROOT):
        mark(layout.ROOT)
    check()
    if name := _own_name():
        layout.claims_directory().mkdir(parents=True, exist_ok=True)
        (layout.claims_directory() / name).touch()


def other_claims(root: Path) -> list[Path]:
    """Return the files of the other claims that have this storage. Empty also if this claim's name is not known."""
    folder = layout.claims_directory(root)
    own = _own_name()
    if not own or not folder.is_dir():
        return []
    # NFS keeps what was removed while it is open under a name that begins with a point.
    return sorted(path for path in folder.iterdir() if path.name != own and not path.name.startswith("."))


def own_directory() -> Path:
    """Return the directory of what the object of this Job shares with no other; it need not be there."""
    name = layout.object_name(os.environ.get(layout.CLAIM, ""), os.environ.get(layout.OBJECT, ""))
    return layout.objects_directory() / name


def _own_name() -> str:
    """Return the claim's name as a file's, of at most 255 bytes; empty: it is not known."""
    name = quote(os.environ.get(layout.CLAIM, ""), safe="")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def check() -> None:
    """Raise StageError(RepositoryUnknown) unless the directory is ours. A claim without one holds nothing yet."""
    if not os.path.lexists(layout.ROOT) or _is_bare(layout.ROOT):
        return
    path = layout.ROOT / layout.MARKER
    if layout.ROOT.is_symlink():
        raise _unknown("is a link")
    try:
        marker = Marker.from_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _unknown(f"has no marker {layout.MARKER}, so no operator made it") from error
    except (PermissionError, IsADirectoryError, UnicodeDecodeError, DocumentError) as error:
        raise _unknown(f"has a marker {layout.MARKER} that cannot be read ({error})") from error
    if marker.owner != OWNER:
        raise _unknown(f"belongs to something else: its marker {layout.MARKER} does not name {OWNER}")
    if marker.layout != VERSION:
        message = f"{layout.ROOT} on the claim has layout {marker.layout}, and this operator knows layout {VERSION}"
        advice = "run the operator that wrote it, or set spec.repository to another claim"
        raise StageError(Reason.REPOSITORY_UNKNOWN, f"{message}; {advice}")


def mark(directory: Path) -> None:
    """Write the marker into a directory."""
    write_file(directory / layout.MARKER, Marker(OWNER, VERSION).to_json().encode())


def _is_bare(root: Path) -> bool:
    """Whether nothing but directories lies there, so that it is nobody's.

    A kubelet makes them for the mounts of a server whose revision was on the claim before it was emptied, or made anew.
    A marker that another Job is writing, or that a Job left half-written, is nothing either.
    """
    if root.is_symlink() or not root.is_dir() or os.path.lexists(root / layout.MARKER):
        return False
    for folder, folders, files in os.walk(root, onerror=_raise):
        is_begun = Path(folder) == root and all(each.startswith(TEMPORARY_PREFIX) for each in files)
        if (files and not is_begun) or any(Path(folder, each).is_symlink() for each in folders):
            return False
    return True


def _raise(error: OSError) -> None:
    raise error


def _make(target: Path) -> None:
    """Make the directory with its marker; another Job may be first."""
    directory = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        directory.chmod(0o755)
        mark(directory)
        os.rename(directory, target)
        sync(target.parent)
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise


def _unknown(what: str) -> StageError:
    advice = (
        "if nothing in it is needed, delete it, and the operator makes it anew; otherwise move it away, or set"
        " spec.repository to another claim"
    )
    return StageError(Reason.REPOSITORY_UNKNOWN, f"{layout.ROOT} on the claim {what}; nothing was written; {advice}")
