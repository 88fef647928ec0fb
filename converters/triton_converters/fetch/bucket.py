"""What lies in a bucket: one object, or all objects below a folder. It is the same for each cloud, by obstore.

obstore's errors hold URLs and what the server said; only their kind is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection, field
from triton_converters.fetch.credentials import UnusableError
from triton_converters.fetch.folder import (
    MOST_FILES,
    NO_NAME,
    VERSION,
    File,
    changed,
    check_version,
    chosen,
    clash,
    minute,
    missing,
    single,
)
from triton_converters.fetch.http_file import RANGE_REFUSED, TAG
from triton_converters.fetch.partial import Partial
from triton_converters.fetch.patience import patiently
from triton_converters.fetch.remote import FILES, Fetched, Remote

if TYPE_CHECKING:  # The library has no such names when it runs.
    from obstore import GetOptions, GetResult, ObjectMeta
    from obstore.store import ObjectStore

LISTED = 1000
"""Objects in one answer."""
LONGEST = timedelta(days=7)
"""How long one object may take. The Job's deadline comes first; obstore's own is 30 s."""
UNFIT = "has something else under the keys of this scheme than it needs"
ELSEWHERE = (301, 400)
"""HTTP statuses of a bucket of S3 in another region."""
_STATUS = re.compile(r"Status \{\s*status: (\d{3})\b")
_NO_PART = re.compile(r"source: (NotPartial|\w{1,32}Range|InvalidRangeRequest)\b")
"""What the library says of an answer to a request for a part that has the whole object, or another part."""
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w{1,64})")
_WORDS = {
    "dns error": "its name does not resolve",
    "ConnectionRefused": "the connection is refused",
    "TimedOut": "no answer came in time",
    "kind: Timeout": "no answer came in time",
}
"""What a piece of an error's text means."""
_VERSION = re.compile(r"[\x21-\x7e]{1,128}")


class Bucket:
    """A bucket, or a part of one that the URI names."""

    def __init__(self, remote: Remote, make: Callable[..., ObjectStore], **settings: str | bool | None) -> None:
        """``make``: a class of obstore, and its settings; None leaves one out. Raises StageError."""
        self._remote = remote
        self._name = f"{remote.uri.scheme}://{remote.uri.host}"
        try:
            self._store = make(
                remote.uri.host,
                client_options=_client_options(),
                retry_config={"max_retries": 0},
                **{name: value for name, value in settings.items() if value is not None},
            )
        except (BaseError, ValueError):
            raise UnusableError(UNFIT) from None

    def fetch(self, place: Path) -> Fetched:
        """Download the object, or the objects below the folder. Raises StageError."""
        path = self._remote.uri.path
        found = self._object()
        if found is None:
            return self._fetch_folder(path, place)
        target = single(place, self._remote)
        check_version(self._remote, _version([found]))
        meta = self._download(path, place, target)
        check_version(self._remote, _version([meta]))
        version = meta["version"] or meta["e_tag"] or ""
        return Fetched(version if _VERSION.fullmatch(version) else "", single=True, files=frozenset({target.name}))

    def look(self) -> LookResult:
        """Return the version of the object, or of the objects below the folder. Raises StageError.

        It takes one request for the object, and without one another for each LISTED objects below the folder.
        """
        found = self._object()
        if found is not None:
            return LookResult(_version([found]), exact=False, label=f"modified {minute(found['last_modified'])}")
        told, _ = self._folder(self._remote.uri.path)
        newest = minute(max(each["last_modified"] for each in told))
        return LookResult(_version(told), exact=False, label=f"{len(told)} objects, newest {newest}")

    def _object(self) -> ObjectMeta | None:
        """Return what the server says of the object that the URI names; None: there is none."""
        path = self._remote.uri.path
        return patiently(lambda: self._head(path)) if path else None

    def _folder(self, path: str) -> tuple[list[ObjectMeta], list[File]]:
        """Return what the server says of the objects below a folder that are taken, and their files."""
        what = f"{self._name}/{path}"
        above = f"{path}/" if path else ""
        # No server lists others, but one that did would have them taken without a part in the version.
        listed = [each for each in patiently(lambda: self._list(path)) if each["path"].startswith(above)]
        files = chosen(self._remote, _files(listed, path, what)) if listed else []
        if not files:
            raise StageError(Reason.SOURCE_NOT_FOUND, f"{what} is neither an object nor a folder with objects")
        names = {f"{path}/{each.name}" if path else each.name for each in files}
        return [each for each in listed if each["path"] in names], files

    def _fetch_folder(self, path: str, place: Path) -> Fetched:
        what = f"{self._name}/{path}"
        above = f"{path}/" if path else ""
        told, files = self._folder(path)
        version = _version(told)
        check_version(self._remote, version)
        # The library tells the mark of an empty folder from an object no more: both have no slash at the end.
        files = [each for each in files if each.bytes or self._is_object(above + each.name)]
        if not files:
            raise StageError(Reason.SOURCE_NOT_FOUND, f"{what} has no file, but marks of empty folders")
        for each in missing(place, version, files, what):
            target = place / FILES / each.name
            self._download(above + each.name, place, target, each.bytes)
            if (came := target.stat().st_size) != each.bytes:
                message = f"{what} changed: {each.name} has {came} bytes, but was listed with {each.bytes}"
                raise StageError(Reason.SOURCE_TRUNCATED, message, final=False)
        if _version(self._folder(path)[0]) != version:
            # A folder that becomes what it was has the same version, but not all that came is of it.
            (place / VERSION).unlink()
            raise changed()
        return Fetched("", single=False, files=frozenset(each.name for each in files))

    def _head(self, path: str) -> ObjectMeta | None:
        """Return what the server says of an object; None: there is none."""
        try:
            with self._told(path):
                return self._store.head(path)
        except StageError as error:
            if error.reason is Reason.SOURCE_NOT_FOUND:
                return None
            raise

    def _is_object(self, path: str) -> bool:
        return patiently(lambda: self._head(path)) is not None

    def _list(self, path: str) -> list[ObjectMeta]:
        listed: list[ObjectMeta] = []
        with self._told(path):
            for some in self._store.list(path or None, chunk_size=LISTED):
                listed.extend(some)
                if len(listed) > MOST_FILES:
                    break
        if len(listed) > MOST_FILES:
            message = f"{self._name}/{path} has more than {MOST_FILES} objects; name a smaller folder"
            raise StageError(Reason.SOURCE_INVALID, message)
        return listed

    def _download(self, path: str, place: Path, target: Path, listed: int | None = None) -> ObjectMeta:
        """Write an object to ``target`` and return what the server said of it."""
        partial = Partial(place, f"{self._name}/{path}", target.name, listed)
        meta = patiently(lambda: self._try(path, partial), lambda: partial.have()[1])
        partial.complete(target)
        return meta

    def _try(self, path: str, partial: Partial) -> ObjectMeta:
        """Read the object, or what is missing of it, over one connection."""
        tag, have = partial.have()
        # The last byte is asked for again, because nothing at all cannot be asked for.
        start = max(have - 1, 0)
        options: GetOptions = {"range": {"offset": start}, "if_match": tag} if start else {}
        try:
            with self._told(path):
                answer = self._store.get(path, options=options)
                meta = answer.meta
        except StageError as error:
            # It is another object by now, or the server does not go on with one: the next try asks for all of it.
            if error.reason is Reason.SOURCE_TRUNCATED:
                partial.forget()
            raise
        found = meta["e_tag"] or ""
        # Some servers overlook If-Match, and send a part of another object.
        if answer.range[0] != start or (start and found != tag):
            partial.forget()
            raise connection.no_part(self._name)
        partial.write(self._chunks(path, answer), found if TAG.fullmatch(found) else "", start, meta["size"])
        return meta

    def _chunks(self, path: str, answer: GetResult) -> Iterator[bytes]:
        with self._told(path, body=True):
            # As small as they come: what counts how fast a file comes must hear of each.
            yield from answer.stream(min_chunk_size=1)

    @contextmanager
    def _told(self, path: str, body: bool = False) -> Iterator[None]:
        """Raise what the library raises as a StageError. ``body``: whether the server has answered already."""
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            raise self._failure(error, path, body) from None
        except ValueError:
            message = f"{self._name}/{path} has an object that was changed at a time that is none; write it again"
            raise StageError(Reason.SOURCE_INVALID, message) from None
        except BaseException as error:
            # The library does not check the parts of a URL, and panics over one that cannot be.
            if type(error).__name__ == "PanicException":
                raise UnusableError(UNFIT) from None
            raise

    def _failure(self, error: Exception, path: str, body: bool) -> StageError:
        text = str(error)
        status = _status(error, text)
        if certificate := _CERTIFICATE.search(text):
            return connection.untrusted(self._name, certificate[1])
        if isinstance(error, InvalidPathError) or "InvalidPath" in text:
            return StageError(Reason.SOURCE_INVALID, f"{self._name}/{path} has an object with {NO_NAME}; rename it")
        if isinstance(error, PreconditionError) or status == RANGE_REFUSED or body:
            return connection.broken(self._name)
        if not status and _NO_PART.search(text):
            return connection.no_part(self._name)
        if status in ELSEWHERE and self._remote.uri.scheme == "s3":
            message = (
                f"{self._name} answered {status}, as a bucket of another region does; put its region into the Secret of"
                f" {field.of('secretRef')}, under the key AWS_REGION"
            )
            return StageError(Reason.SOURCE_INVALID, message)
        if status in connection.DENIED and self._remote.service_account:
            message = (
                f"{self._name} answered {status} to ServiceAccount {self._remote.service_account}; let its identity"
                " read the bucket, then type: kubectl triton retry NAME"
            )
            return StageError(Reason.SOURCE_ACCESS_DENIED, message)
        if status:
            return connection.answered(self._name, status, f"/{path}", bool(self._remote.credentials))
        why = next((words for piece, words in _WORDS.items() if piece in text), "the connection broke")
        return connection.unreachable(self._name, why)


def _status(error: Exception, text: str) -> int:
    """Return the HTTP status of an error; 0: there was no answer."""
    kinds = {FileNotFoundError: 404, PermissionDeniedError: 403, UnauthenticatedError: 401}
    if found := _STATUS.search(text):
        return int(found[1])
    if "BareRedirect" in text:
        return 301
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 0)


def _version(listed: Iterable[ObjectMeta]) -> str:
    """Return a hash of what the server says of these objects."""
    told = sorted((each["path"], each["size"], each["e_tag"] or str(each["last_modified"])) for each in listed)
    return sha256(repr(told).encode()).hexdigest()


def _files(listed: list[ObjectMeta], folder: str, what: str) -> list[File]:
    """Return the files by their paths below the folder; raises StageError for one that no source has."""
    above = f"{folder}/" if folder else ""
    found = sorted(((each["path"].removeprefix(above).split("/"), each["size"]) for each in listed), reverse=True)
    files: list[File] = []
    last: list[str] = []
    try:
        for parts, size in found:
            # An empty object stands for a folder in the consoles of some clouds.
            if size or len(parts) == len(last) or last[: len(parts)] != parts:
                files.append(File("/".join(parts), size))
                last = parts
    except ValueError as error:
        raise StageError(Reason.SOURCE_INVALID, f"{what} has an object with {error}; rename it") from None
    if why := clash(each.name for each in files):
        raise StageError(Reason.SOURCE_INVALID, f"{what} has {why}; rename one of them")
    return files[::-1]


def _client_options() -> dict[str, Any]:
    """Return how obstore connects: as ``connection`` does."""
    options: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=connection.CONNECT_SECONDS),
        "read_timeout": timedelta(seconds=connection.READ_SECONDS),
        "timeout": LONGEST,
        "root_certificate": Path(certifi.where()).read_text() + os.environ.get(connection.CA_BUNDLE, ""),
    }
    if proxy := os.environ.get(connection.PROXY):
        options |= {"proxy_url": proxy, "proxy_excludes": os.environ.get(connection.NO_PROXY, "")}
        if bundle := os.environ.get(connection.CA_BUNDLE):
            options["proxy_ca_certificate"] = bundle
    return options
