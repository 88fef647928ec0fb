"""What is asked of a scheme's module, and what it answers."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import dirname

from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.contract.uris import Uri
from triton_converters.fetch import field as field_of_spec
from triton_converters.fetch.credentials import Credentials
from triton_converters.found.formats import NAMED_FILES

FILES = "files"
"""Folder of the download's directory with the files that are complete; it is published."""
ARCHIVES = "archives"
"""Folder of the download's directory with the archives that are complete."""


@dataclass(frozen=True)
class Remote:
    """The files to download."""

    uri: Uri
    credentials: Credentials
    request: SourceRequest
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


def taken(names: Collection[str], request: SourceRequest) -> set[str]:
    """Return those of a source's files that are taken of it; raises what `check_named` raises.

    They lie in the folders that the paths name, or of a model's file in its own folder, because ONNX graphs name
    weights there. Without paths, or if a model's file lies at the root, all are taken that the spec includes.
    """
    found = {name for name in names if wanted(name, request.include)}
    check_named(found, request)
    folders = {dirname(path) if path in found else path for path in request.paths}
    if not folders or "" in folders:
        return found
    return {name for name in found if name in request.files or any(name.startswith(f"{each}/") for each in folders)}


def check_named(files: Collection[str], request: SourceRequest) -> None:
    """Raise StageError unless the source has files, and among them all that the spec names.

    EntrypointInvalid, RequirementsInvalid or SourceNotFound; the message lists what is there.
    """
    for path in (*request.paths, *request.models):
        if path not in files and not any(name.startswith(f"{path}/") for name in files):
            message = f"the source has no {path!r}{_left_out(path, request)}; it has: {_some(files)}"
            raise StageError(Reason.ENTRYPOINT_INVALID, message)
    for path in request.files:
        if path not in files:
            by = "spec.conversion.requirements" if path == request.requirements else "requirements of a model"
            texts = _some(name for name in files if name.endswith(".txt"))
            message = f"{request.uri} has no file {path}, which {by} names{_left_out(path, request)}"
            raise StageError(Reason.REQUIREMENTS_INVALID, f"{message}; its text files: {texts}")
    if not files:
        named = f" that {field_of_spec.of('include')} names" if request.include else ""
        raise StageError(Reason.SOURCE_NOT_FOUND, f"{request.uri} has no file{named}")


def _left_out(path: str, request: SourceRequest) -> str:
    """Return in words that the spec leaves a path out; empty: it does not."""
    return "" if wanted(path, request.include) else f", and {field_of_spec.of('include')} does not name it"


def _some(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, sorted(names)[:NAMED_FILES])) or "none"
