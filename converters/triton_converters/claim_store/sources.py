"""Where a source is published: ``sources/<digest>/``, which holds exactly its files.

The digest of a single file does not cover its name. If the claim has the content under another name already, such as
that of another object, the file is published as a directory that holds it, under that directory's digest. A second name
next to the first would be a module that the other object's code may import.

A digest is no proof that somebody may read the files: status and logs show it. So an object uses only what it has
received: its own source Job, which alone notes that, had the files themselves. The note is by the object's name, so it
outlives a restore.
"""

from collections.abc import Mapping
from pathlib import Path

from triton_converters.claim_store.digest import digest_of, hashes_of, holds, is_intact, is_listing, is_named_for
from triton_converters.claim_store.publish import publish_directory
from triton_converters.claim_store.root import own_directory
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason


def find(hashes: Mapping[str, str], single: bool) -> str:
    """Return the digest under which exactly these files are published; empty: under none.

    ``hashes``: the files' SHA-256 by name. ``single``: it is one file, not a directory.
    """
    return next((digest for digest in _digests(hashes, single) if _is_at(digest, hashes)), "")


def under(digest: str) -> dict[str, str]:
    """Return the SHA-256 of the files that are published under a digest, by name; empty: none, or other ones."""
    directory = layout.source_directory(digest)
    try:
        hashes = hashes_of(directory)
        return hashes if is_named_for(directory, hashes) else {}
    except (StageError, OSError):
        return {}


def receive(digest: str) -> None:
    """Note that this Job, and so its object, had the files that are published under a digest; raises OSError."""
    _note(digest).parent.mkdir(parents=True, exist_ok=True)
    _note(digest).touch()


def is_received(digest: str) -> bool:
    """Whether a source Job of this object had the files that are published under a digest."""
    return _note(digest).exists()


def check_received(digest: str) -> None:
    """Raise StageError(InputMissing) if user code of this object must not read what a digest names."""
    if not is_received(digest):
        message = (
            f"no source Job of this object has read what the claim holds as {layout.source_directory(digest)}, or"
            " somebody deleted the note of it; the source is read again"
        )
        raise StageError(Reason.INPUT_MISSING, message, final=False)


def publish(directory: Path, hashes: Mapping[str, str], single: bool) -> str:
    """Rename ``directory``, which holds exactly these files, and return the digest under which they are published.

    Raises StageError(SourceInvalid) if it is a single file that has the digest of a directory, or if the claim has
    other files under each digest; OSError.
    """
    if single and is_listing(directory / next(iter(hashes))):
        what = f"{next(iter(hashes))!a:.200} is a list of SHA-256 digests, and the digest of a folder is that of such"
        message = f"{what} a list; put the file into a folder, and name that folder as the source"
        raise StageError(Reason.SOURCE_INVALID, message)
    for digest in _digests(hashes, single):
        if publish_directory(directory, layout.source_directory(digest), is_intact) or _is_at(digest, hashes):
            return digest
    other = f"the claim has other files under the digest {digest}"
    message = f"{other}; change the source, or give the object its own claim"
    raise StageError(Reason.SOURCE_INVALID, message)


def _note(digest: str) -> Path:
    return own_directory() / ".received" / digest


def _digests(hashes: Mapping[str, str], single: bool) -> list[str]:
    """Return the digests under which the files may be published, the usual one first."""
    return [digest_of(hashes, kind) for kind in ((True, False) if single else (False,))]


def _is_at(digest: str, hashes: Mapping[str, str]) -> bool:
    directory = layout.source_directory(digest)
    return holds(directory, hashes) and is_named_for(directory, hashes)
