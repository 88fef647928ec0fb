"""``https://HOST/PATH/FILE``: a single file, with basic authentication or a bearer token."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path

from urllib3.util import make_headers

from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.fetch import field
from triton_converters.fetch.connection import opened
from triton_converters.fetch.credentials import Credentials, choose
from triton_converters.fetch.folder import check_version, minute, single
from triton_converters.fetch.http_file import IDENTITY, download
from triton_converters.fetch.patience import patiently
from triton_converters.fetch.remote import Fetched, Remote

TOKEN, USER, PASSWORD = KEYS = "token", "username", "password"
"""The keys of a Secret."""


@dataclass(frozen=True)
class Head:
    """What the server says of the file; a header that it does not send is empty."""

    tag: str
    modified: str
    length: str

    @property
    def version(self) -> str:
        """A hash of it."""
        return sha256(repr((self.tag, self.modified, self.length)).encode()).hexdigest()

    @property
    def label(self) -> str:
        """When the file was changed last, or else its entity tag."""
        try:
            return f"modified {minute(parsedate_to_datetime(self.modified))}"
        except (OverflowError, ValueError):
            return f"entity tag {quoted(self.tag)}"


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the file; its version is its entity tag. Raises StageError."""
    target = single(place, remote)
    header = headers(remote.credentials)
    tag = download(_url(remote), place, target, lambda: header)
    if remote.request.version:
        head = _head(remote)
        check_version(remote, replace(head, tag=tag or head.tag).version)
    return Fetched(tag, single=True, files=frozenset({target.name}))


def look(remote: Remote) -> LookResult:
    """Return the version that one HEAD request tells. Raises StageError."""
    head = _head(remote)
    return LookResult(head.version, exact=False, label=head.label)


def _head(remote: Remote) -> Head:
    return patiently(lambda: _asked(remote))


def _asked(remote: Remote) -> Head:
    with opened(_url(remote), IDENTITY, headers(remote.credentials), method="HEAD") as answer:
        head = Head(*(answer.headers.get(name, "") for name in ("ETag", "Last-Modified", "Content-Length")))
    if not (head.tag or head.modified):
        message = (
            f"{remote.uri.host} answers a HEAD request with neither ETag nor Last-Modified, so a newer file cannot be"
            f" told from this one; use a server that sends one, or remove {field.of('interval')}"
        )
        raise StageError(Reason.SOURCE_INVALID, message)
    return head


def _url(remote: Remote) -> str:
    return f"https://{remote.uri.host}/{remote.uri.path}"


def headers(credentials: Credentials) -> Mapping[str, str]:
    """Return the header that the Secret's token, or its name and password, make. Raises UnusableError."""
    found = choose(credentials, (TOKEN,), (USER, PASSWORD))
    if len(found) == 1:
        return {"Authorization": f"Bearer {found[0]}"}
    if len(found) == 2:
        return make_headers(basic_auth=":".join(found))
    return {}
