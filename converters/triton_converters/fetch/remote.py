"""What is asked of a scheme's module, and what it answers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import dirname

from triton_converters.contract.uris import Uri
from triton_converters.fetch.credentials import Credentials

FILES = "files"
"""Folder of the download's directory with the files that are complete; it is published."""
ARCHIVES = "archives"
"""Folder of the download's directory with the archives that are complete."""


@dataclass(frozen=True)
class Remote:
    """The files to download."""

    uri: Uri
    credentials: Credentials
    revision: str = ""
    """Branch, tag or commit; empty: the scheme's default."""
    include: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths of models, as `taken` takes them."""
    files: tuple[str, ...] = ()
    """Paths of single files that are taken besides."""
    service_account: str = ""
    """The ServiceAccount by which a cloud knows the pod; empty: it does not."""


@dataclass(frozen=True)
class Fetched:
    """The files that were downloaded."""

    resolved: str
    """What the server calls the version; may be empty."""
    single: bool
    """Whether one file was downloaded, and not a directory."""
    files: frozenset[str] = frozenset()
    """The paths below FILES of the files that belong to the source; no other lies there."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of files, by their paths, as far as the server told."""
    published: str = ""
    """The digest of a source on the claim that has these files, so that none was downloaded; empty: there is none."""


def wanted(name: str, include: tuple[str, ...]) -> bool:
    """Whether a file is part of the source: one of the patterns matches its path; ``*`` matches slashes too."""
    return not include or any(fnmatchcase(name, each) for each in include)


def taken(names: Collection[str], paths: Collection[str], files: Collection[str]) -> set[str]:
    """Return these files, and those in the folders that the paths name, or in which the files that they name lie.

    ONNX graphs name weights in their own folder. All files are returned if one of them is not there, so that a message
    can list them, if a model's file lies at the root, or without paths.
    """
    if not paths or not set(files) <= set(names):
        return set(names)
    found = set(files)
    for path in paths:
        folder = dirname(path) if path in names else path
        inside = {name for name in names if name.startswith(f"{folder}/")}
        if not inside:
            return set(names)
        found |= inside
    return found
