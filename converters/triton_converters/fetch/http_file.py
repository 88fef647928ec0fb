"""One file over HTTPS, in as many connections as it takes.

A connection that breaks is made anew and goes on where the last one stopped, if the server still has the same file: it
then has the same strong entity tag (RFC 9110, If-Range). Without such a tag a break means to begin again.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.connection import opened
from triton_converters.fetch.progress import STALL_BYTES, Progress, StalledError, size

CHUNK_BYTES = 1024 * 1024
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try. After one that brought at least STALL_BYTES they begin anew."""
_T = TypeVar("_T")
PART, STATE = "part", "part.json"
"""In the download's directory: the bytes that came so far, and what file they are of."""
_TAG = re.compile(r'"[\x21\x23-\x7e]{1,128}"')
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


@dataclass(frozen=True)
class Part:
    """The bytes of a file that are there."""

    url: str
    tag: str
    """The strong entity tag; empty: none, so the bytes cannot be gone on with."""


def download(url: str, place: Path, target: Path, credentials: Mapping[str, str]) -> str:
    """Write the file of a URL to ``target`` and return its entity tag, which may be empty.

    ``place``: the directory that keeps what came of a file that is not complete. ``credentials``: headers for the URL's
    host. Raises StageError.
    """
    tag = patiently(lambda: _try(url, place, credentials), lambda: _have(place, url)[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(place / PART, target)
    (place / STATE).unlink(missing_ok=True)
    return tag


def patiently(attempt: Callable[[], _T], count: Callable[[], int] = lambda: 0) -> _T:
    """Return what an attempt returns, which another one may follow after a pause.

    ``count``: the bytes that came so far. Raises the last attempt's StageError, and at once one that is final.
    """
    most, pauses = 0, list(PAUSES)
    while True:
        try:
            return attempt()
        except StageError as error:
            have = count()
            if have - most >= STALL_BYTES:
                most, pauses = have, list(PAUSES)
            if error.final or error.reason is Reason.STORAGE_FULL or not pauses:
                raise
            pause = pauses.pop(0)
            print(f"{error.reason}: {error.message}; trying again in {pause:g} s", flush=True)
            time.sleep(pause)


def _have(place: Path, url: str) -> tuple[str, int]:
    """Return the tag and the number of the bytes that are there of the URL's file; 0: none that can be gone on with."""
    try:
        state = json.loads((place / STATE).read_text(encoding="utf-8"))
        known = Part(str(state["url"]), str(state["tag"]))
        return (known.tag, (place / PART).stat().st_size) if known.url == url and known.tag else ("", 0)
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0


def _try(url: str, place: Path, credentials: Mapping[str, str]) -> str:
    """Read the file, or what is missing of it, over one connection."""
    tag, have = _have(place, url)
    # The last byte is asked for again, because nothing at all cannot be asked for.
    start = max(have - 1, 0)
    resume = {"Range": f"bytes={start}-", "If-Range": tag} if start else {}
    host = urlsplit(url).netloc
    with opened(url, {"Accept-Encoding": "identity", **resume}, credentials) as answer:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            message = f"{host} sends the file compressed although it was asked not to; use a server that does not"
            raise StageError(Reason.SOURCE_INVALID, message)
        if answer.status == 200:
            start = 0
        found = answer.headers.get("ETag", "")
        if answer.status == 206 and (found not in ("", tag) or not _continues(answer, start)):
            (place / STATE).unlink(missing_ok=True)
            message = f"{host} did not send the part of the file that was asked for"
            raise StageError(Reason.SOURCE_TRUNCATED, message, final=False)
        total = _total(answer, start)
        if total is not None:
            check_room(place, total - _size(place / PART))
        if answer.status == 200:
            tag = found if _TAG.fullmatch(found) else ""
        (place / STATE).write_text(json.dumps({"url": url, "tag": tag}), encoding="utf-8")
        _write(answer, place, url.rpartition("/")[2], start, total)
    return tag


def _continues(answer: BaseHTTPResponse, start: int) -> bool:
    """Whether an answer 206 has everything from ``start`` on."""
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == start and int(found[2]) + 1 == int(found[3])


def _total(answer: BaseHTTPResponse, start: int) -> int | None:
    """Return the file's size; None if the server does not say."""
    length = answer.headers.get("Content-Length", "")
    return start + int(length) if re.fullmatch(r"\d{1,18}", length) else None


def check_room(place: Path, needed: int) -> None:
    """Raise StageError(StorageFull) if the claim has less room than so many bytes."""
    free = shutil.disk_usage(place).free
    if needed > free:
        message = (
            f"the claim has {size(free)} left, and the download needs {size(needed)} more; enlarge the claim, or"
            " delete what is no longer needed"
        )
        raise StageError(Reason.STORAGE_FULL, message, final=False)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _write(answer: BaseHTTPResponse, place: Path, name: str, start: int, total: int | None) -> None:
    progress = Progress(place, name, start, total)
    with (place / PART).open("r+b" if start else "wb") as file:
        file.seek(start)
        try:
            while chunk := answer.read1(CHUNK_BYTES, decode_content=False):
                file.write(chunk)
                progress.add(len(chunk))
        except StalledError as error:
            raise StageError(Reason.SOURCE_UNREACHABLE, f"{name} comes too slowly: {error}", final=False) from None
    if total is not None and _size(place / PART) != total:
        message = f"{name} has {_size(place / PART)} bytes, but the server announced {total}"
        raise StageError(Reason.SOURCE_TRUNCATED, message, final=False)
