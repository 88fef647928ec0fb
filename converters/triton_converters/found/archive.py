"""The names in a zip archive."""

import zipfile
from pathlib import Path

SIGNATURE = b"PK\x03\x04"


def members(path: Path, head: bytes) -> frozenset[str]:
    """Return the names in an archive, with and without the top folder that torch.save adds; empty: it is no archive."""
    if not head.startswith(SIGNATURE):
        return frozenset()
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return frozenset()
    return frozenset(names) | {name.partition("/")[2] for name in names}
