"""``mlflow://SERVER/NAME``: a version of a registered model of an MLflow server, by its number or an alias.

The server tells where the files are: behind itself (``mlflow-artifacts:``), behind another server with the same API
(``https``), or in a bucket of S3, which is read with the bucket's keys of the same Secret. A bucket that somebody else
names gets no other key than those, and another server none.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from posixpath import join
from typing import Any
from urllib.parse import quote, unquote, urlencode

from urllib3 import BaseHTTPResponse

from triton_converters.contract import uris
from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.fetch import connection, field, https, s3
from triton_converters.fetch.connection import opened
from triton_converters.fetch.credentials import known
from triton_converters.fetch.folder import (
    MOST_FILES,
    VERSION,
    File,
    changed,
    check_version,
    chosen,
    clash,
    missing,
)
from triton_converters.fetch.http_file import download
from triton_converters.fetch.patience import patiently
from triton_converters.fetch.remote import FILES, Fetched, Remote

API, ARTIFACTS = "/api/2.0/mlflow", "/api/2.0/mlflow-artifacts/artifacts"
MOST_FOLDERS = 256
"""Folders of a version that are listed, each by a request; a SavedModel has three."""
LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes of an answer that are read: it is parsed in memory. One of a folder of MOST_FILES files may have half of it."""
LARGEST_ERROR = 64 * 1024
"""Bytes of an error that are read; MLflow's have a few hundred."""
READY = "READY"
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_ARTIFACTS = re.compile(rf"https://([A-Za-z0-9.-]+(?::[0-9]{{1,5}})?)((?:/[A-Za-z0-9._~+,=:%/-]*)?{ARTIFACTS})/(.+)")


@dataclass(frozen=True)
class Artifacts:
    """A folder behind a server's API of artifacts."""

    host: str
    url: str
    """The API's own."""
    path: str
    """The folder's path."""
    credentials: Mapping[str, str]
    """The headers that the server gets."""


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the wanted files of a version; what the server calls it is its number. Raises StageError."""
    server = _Server(remote)
    number, _, version = remote.request.version.partition("@")
    number, folder = server.version(number or remote.request.revision)
    wanted = replace(remote, request=replace(remote.request, version=version))
    if isinstance(folder, Remote):
        return replace(s3.fetch(replace(folder, request=wanted.request), place), resolved=number)
    return replace(_fetch(folder, wanted, place), resolved=number)


def look(remote: Remote) -> LookResult:
    """Return the number of the version, with a hash of what its listing says. Raises StageError.

    It takes a request for the version, one for where its files are unless that tells it, and one for each folder.
    """
    name = remote.request.revision
    number, folder = _Server(remote).version(name)
    version = s3.look(folder).version if isinstance(folder, Remote) else _version(folder, _taken(folder, remote))
    label = f"version {number}" if name == number else f"version {number} ({name})"
    return LookResult(f"{number}@{version}", exact=True, label=label)


class _Server:
    """The server of a registry, and the model in it that the URI names."""

    def __init__(self, remote: Remote) -> None:
        prefix, _, name = remote.uri.path.rpartition("/")
        self.host, self.name = remote.uri.host, unquote(name)
        self._remote = remote
        self._url = f"https://{join(self.host, prefix)}".removesuffix("/")
        secret = known(remote.credentials, *https.KEYS, *s3.KEYS)
        self._header = https.headers({key: value for key, value in secret.items() if key in https.KEYS})
        self._bucket_secret = {key: value for key, value in secret.items() if key in s3.KEYS}

    def version(self, name: str) -> tuple[str, Artifacts | Remote]:
        """Return the number of the version with a number or an alias, and where its files are."""
        if not name:
            message = f"name an alias or the number of a version in {field.of('version')}"
            raise StageError(Reason.SOURCE_INVALID, message)
        by_number = _NUMBER.fullmatch(name) is not None
        path = "model-versions/get" if by_number else "registered-models/alias"
        told = self._ask(path, f"version {name}", name=self.name, **{"version" if by_number else "alias": name})
        number, status, source = (self._text(told, "model_version", key) for key in ("version", "status", "source"))
        if not _NUMBER.fullmatch(number) or (by_number and number != name):
            raise self._invalid()
        if status != READY:
            message = f"version {number} of {quoted(self.name)} on {self.host} is {quoted(status)}, and not {READY} yet"
            raise StageError(Reason.SOURCE_NOT_FOUND, f"{message}; the operator tries again")
        return number, self._folder(number, source)

    def _folder(self, number: str, source: str) -> Artifacts | Remote:
        """Return where the files of a version are; ``source``: where it was registered from."""
        what = f"version {number}"
        if source.startswith("models:/"):
            asked = {"name": self.name, "version": number}
            source = self._text(self._ask("model-versions/get-download-uri", what, **asked), "artifact_uri")
        if source.startswith("runs:/"):
            run, _, below = source.removeprefix("runs:/").partition("/")
            told = self._ask("runs/get", f"the run of {what}", run_id=run)
            source = join(self._text(told, "run", "info", "artifact_uri"), below)
        if source.startswith("s3://"):
            try:
                return replace(self._remote, uri=uris.split(source), credentials=self._bucket_secret)
            except ValueError:
                raise self._elsewhere(what, source) from None
        # Without a host it is this server's own.
        here, host = f"{self._url}{ARTIFACTS}/", "mlflow-artifacts://"
        if source.startswith(host):
            there, _, path = source.removeprefix(host).partition("/")
            source = f"https://{there}{ARTIFACTS}/{path}"
        elif source.startswith("mlflow-artifacts:/"):
            source = here + source.removeprefix("mlflow-artifacts:/").lstrip("/")
        found = _ARTIFACTS.fullmatch(source)
        if found is None or ".." in found[3].split("/"):
            raise self._elsewhere(what, source)
        credentials = self._header if connection.is_same_origin(source, self._url) else {}
        return Artifacts(found[1], f"https://{found[1]}{found[2]}", found[3].strip("/"), credentials)

    def _ask(self, path: str, what: str, **query: str) -> Any:
        def asked() -> bytes:
            url = f"{self._url}{API}/{path}?{urlencode(query)}"
            with opened(url, {}, self._header, lambda answer, is_first: self._refusal(answer, what)) as answer:
                return connection.body(answer, LARGEST_ANSWER, self.host)

        try:
            return json.loads(patiently(asked))
        except (RecursionError, ValueError):
            raise self._invalid() from None

    def _refusal(self, answer: BaseHTTPResponse, what: str) -> StageError | None:
        """Return what MLflow means by an error: it answers 400 about an alias that a model does not have."""
        if answer.status not in (400, 404):
            return None
        try:
            told = json.loads(connection.body(answer, LARGEST_ERROR, self.host))
            code = told["error_code"]
        except (KeyError, RecursionError, TypeError, ValueError):
            return None
        if code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            return None
        message = f"{self.host} has no model {quoted(self.name)} with {what}; correct {field.of('uri')}"
        return StageError(Reason.SOURCE_NOT_FOUND, f"{message} or {field.of('version')}")

    def _text(self, told: Any, *path: str) -> str:
        """Return the text at a path of an answer."""
        for each in path:
            told = told.get(each) if isinstance(told, dict) else None
        # JSON can hold characters that no URL has.
        if not isinstance(told, str) or told.encode(errors="ignore").decode() != told:
            raise self._invalid()
        return told

    def _invalid(self) -> StageError:
        message = f"the answer of {self.host} about {quoted(self.name)} is not one of an MLflow server"
        return StageError(Reason.SOURCE_INVALID, f"{message}; correct {field.of('uri')}")

    def _elsewhere(self, what: str, source: str) -> StageError:
        message = (
            f"{self.host} keeps the files of {what} of {quoted(self.name)} at {quoted(source)}, where they cannot be"
            " read; register a version whose files are behind an MLflow server (--serve-artifacts) or in a bucket of S3"
        )
        return StageError(Reason.SOURCE_INVALID, message)


def _fetch(folder: Artifacts, remote: Remote, place: Path) -> Fetched:
    """Download the files of a folder, unless it is not the version that is asked for, or changes meanwhile."""
    files = _taken(folder, remote)
    version = _version(folder, files)
    check_version(remote, version)
    for each in missing(place, version, files, remote.request.uri):
        url = f"{folder.url}/{quote(join(folder.path, each.name))}"
        download(url, place, place / FILES / each.name, lambda: folder.credentials, each.bytes)
    if _version(folder, _taken(folder, remote)) != version:
        (place / VERSION).unlink()
        raise changed()
    return Fetched("", single=False, files=frozenset(each.name for each in files))


def _version(folder: Artifacts, files: list[File]) -> str:
    """Return a hash of the folder, which is another one for each model that is logged, and of what its listing says.

    Models of one architecture have files of the same names and sizes.
    """
    told = sorted((each.name, each.bytes) for each in files)
    return sha256(repr((folder.path, told)).encode()).hexdigest()


def _taken(folder: Artifacts, remote: Remote) -> list[File]:
    """Return the files below a folder that are taken."""
    files: list[File] = []
    folders = deque([""])
    for _ in range(MOST_FOLDERS):
        if not folders or len(files) > MOST_FILES:
            break
        above = folders.popleft()
        for name, size in _listed(folder, above, remote):
            try:
                each = File(join(above, name), size or 0)
            except ValueError as error:
                raise _refused(remote, f"a file with {error}") from None
            if size is None:
                folders.append(each.name)
            else:
                files.append(each)
    if folders or len(files) > MOST_FILES:
        raise _refused(remote, f"more than {MOST_FOLDERS} folders or {MOST_FILES} files")
    if why := clash(each.name for each in files):
        raise _refused(remote, why)
    return chosen(remote, files)


def _listed(folder: Artifacts, above: str, remote: Remote) -> list[tuple[str, int | None]]:
    """Return the names in a folder below the version's own, with their bytes; a folder has None."""
    url = f"{folder.url}?{urlencode({'path': join(folder.path, above).rstrip('/')})}"

    def asked() -> bytes:
        with opened(url, {}, folder.credentials) as answer:
            return connection.body(answer, LARGEST_ANSWER, folder.host)

    try:
        told = json.loads(patiently(asked))
        found = [(each["path"], None if each["is_dir"] else each["file_size"]) for each in told.get("files", ())]
        # Names of more parts would be files of other folders.
        if any(not isinstance(name, str) or "/" in name for name, _ in found):
            raise ValueError
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise _refused(remote, f"a listing by {folder.host} that is not one of an MLflow server") from None
    return found


def _refused(remote: Remote, what: str) -> StageError:
    return StageError(Reason.SOURCE_INVALID, f"{remote.request.uri} has {what}; register a version without it")
