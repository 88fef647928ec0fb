"""Versions of files that lie on this machine, so that an object learns when they change."""

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from triton_converters.contract import uris
from triton_local.session import Given

SOURCES = ("source", "weights", "dataset")
"""The fields of a spec that name files."""
OWN_LENGTH = 100
"""How much of the user's own version stays; a version has at most 128 characters."""


def versioned(spec: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the spec with versions of claims' and ConfigMaps' files, by which they are read again after a change.

    A cluster's object is told by its author; what lies here is often edited in place. Raises OSError.
    """
    found = deepcopy(dict(spec))
    for each in filter(None, map(found.get, SOURCES)):
        uri = uris.split(each["uri"])
        if uri.scheme == "pvc":
            state = "\n".join(_lines(given.claims[uri.host] / uri.path))
        elif uri.scheme == "configmap":
            state = repr(sorted(given.config_maps[uri.host].items()))
        else:
            continue
        digest = sha256(state.encode(errors="surrogateescape")).hexdigest()[:16]
        each["version"] = f"{each['version'][:OWN_LENGTH]}+{digest}" if each.get("version") else f"files-{digest}"
    return found


def _lines(place: Path) -> Iterator[str]:
    """Yield what changes when a file does. Raises OSError."""
    if not place.is_dir():
        yield _line(place, place.name)
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted([*names, *folders]):
            path = Path(folder, name)
            yield _line(path, str(path.relative_to(place)))


def _line(path: Path, name: str) -> str:
    if not os.path.lexists(path):
        return repr((name, "is not there"))
    found = path.stat() if path.exists() else path.lstat()
    # A folder's own times change with what others leave beside the files.
    times = () if S_ISDIR(found.st_mode) else (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return repr((name, found.st_ino, *times))
