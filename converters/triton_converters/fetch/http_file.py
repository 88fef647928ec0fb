"""One file over HTTPS, in as many connections as it takes.

A connection that breaks is made anew and goes on where the last one stopped, if the server still has the same file: it
then has the same strong entity tag (RFC 9110, If-Range). Without such a tag a break means to begin again.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.connection import no_part, opened
from triton_converters.fetch.partial import Partial
from triton_converters.fetch.patience import patiently

CHUNK_BYTES = 1024 * 1024
IDENTITY = {"Accept-Encoding": "identity"}
"""The header that asks for the file as it is: a compressed one has another entity tag."""
RANGE_REFUSED = 416
"""HTTP status of a part that is not there."""
TAG = re.compile(r'"[\x21\x23-\x7e]{1,128}"')
"""A strong entity tag."""
Header = Callable[[], Mapping[str, str]]
"""Gives the headers with the credentials, anew for each connection: some are valid for a minute."""
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


def download(url: str, place: Path, target: Path, credentials: Header, listed: int | None = None) -> str:
    """Write the file of a URL to ``target`` and return its entity tag, which may be empty.

    ``place``: the directory that keeps what came of a file that is not complete. ``credentials``: headers for the URL's
    host. ``listed``: the bytes that the server's list says; None: it has none. Raises StageError.
    """
    partial = Partial(place, url, target.name, listed)
    tag = patiently(lambda: _try(partial, credentials), lambda: partial.have()[1])
    partial.complete(target)
    return tag


def _try(partial: Partial, credentials: Header) -> str:
    """Read the file, or what is missing of it, over one connection."""
    tag, have = partial.have()
    # The last byte is asked for again, because nothing at all cannot be asked for.
    start = max(have - 1, 0)
    resume = {"Range": f"bytes={start}-", "If-Range": tag} if start else {}
    host = urlsplit(partial.url).netloc

    def refused(answer: BaseHTTPResponse, is_first: bool) -> StageError | None:
        if answer.status != RANGE_REFUSED:
            return None
        # It is a shorter file by now, and the server does not know If-Range: the next try asks for all of it.
        partial.forget()
        return no_part(host)

    with opened(partial.url, {**IDENTITY, **resume}, credentials(), refused) as answer:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            message = f"{host} sends the file compressed although it was asked not to; use a server that does not"
            raise StageError(Reason.SOURCE_INVALID, message)
        if answer.status == 200:
            start = 0
        found = answer.headers.get("ETag", "")
        if answer.status == 206 and (found not in ("", tag) or not _continues(answer, start)):
            partial.forget()
            raise no_part(host)
        if answer.status == 200:
            tag = found if TAG.fullmatch(found) else ""
        partial.write(_chunks(answer), tag, start, _total(answer, start))
    return tag


def _chunks(answer: BaseHTTPResponse) -> Iterator[bytes]:
    while chunk := answer.read1(CHUNK_BYTES, decode_content=False):
        yield chunk


def _continues(answer: BaseHTTPResponse, start: int) -> bool:
    """Whether an answer 206 has everything from ``start`` on."""
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == start and int(found[2]) + 1 == int(found[3])


def _total(answer: BaseHTTPResponse, start: int) -> int | None:
    """Return the file's size; None if the server does not say."""
    length = answer.headers.get("Content-Length", "")
    return start + int(length) if re.fullmatch(r"\d{1,18}", length) else None
