"""A repository of a registry: its manifests, and the header that opens its blobs.

It speaks the OCI distribution specification, with basic authentication or with the tokens that a
registry's own token server gives for a name and password, or for nothing.
"""

import json
import re
import time
from collections.abc import Callable, Container, Mapping
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field
from triton_converters.fetch.connection import DENIED, READ, Refusal, Sent, answered, body, opened
from triton_converters.fetch.patience import patiently

MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
"""The media types of what names its layers."""
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
"""The media types of what names manifests, one for each platform."""
DIGEST = "Docker-Content-Digest"
"""The header with a manifest's digest."""
LARGEST_MANIFEST = 4 * 1024 * 1024
"""What the specification wants every registry to accept."""
LARGEST_TOKEN = 64 * 1024
USUAL_SECONDS, MOST_SECONDS = 60, 3600
"""How long a token is valid if the server does not say, and how long one is used at most."""
MARGIN_SECONDS = 10
"""How long before its end a token is no longer used, so that it is valid when the request arrives."""
_PART = re.compile(r'(?:"[^"]*"|[^",])+')
"""What is between commas that no text in quotation marks has."""
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)(?:\s+(?![=\s])|\s*$)")
_PARAMETER = re.compile(r'\s*(realm|service)\s*=\s*"([\x20\x21\x23-\x7e]{1,1024})"\s*', re.IGNORECASE)
_TOKEN = re.compile(r"[\x21-\x7e]+")
T = TypeVar("T")


class Repository:
    """A repository; ``account`` is the Authorization header of a name and password, or empty.

    ``actions``: what a token has to allow.
    """

    def __init__(self, host: str, name: str, account: str, actions: str = "pull") -> None:
        self.host, self.name = host, name
        self.base = f"https://{host}/v2/{name}"
        self._account, self._actions = account, actions
        self._logins: Mapping[str, Mapping[str, str]] = {}
        self._token, self._expires = "", 0.0

    def manifest(self, reference: str) -> bytes:
        """Return the manifest of a tag or a digest, unread. Raises StageError."""
        return patiently(
            lambda: self._manifest("GET", reference, lambda answer: body(answer, LARGEST_MANIFEST + 1, self.host))
        )

    def digest(self, reference: str) -> str:
        """Return the digest that the registry tells of a manifest, unchecked; it may be empty. Raises StageError."""
        return patiently(lambda: self._manifest("HEAD", reference, lambda answer: answer.headers.get(DIGEST, "")))

    def document(self, digest: str) -> bytes:
        """Return a small blob, unread. Raises StageError."""

        def read(answer: BaseHTTPResponse) -> bytes:
            return body(answer, LARGEST_MANIFEST + 1, self.host)

        return patiently(lambda: self.ask("GET", self.blob(digest), read, self._refusal(digest), {}))

    def blob(self, digest: str) -> str:
        """Return a blob's URL."""
        return f"{self.base}/blobs/{digest}"

    def header(self) -> Mapping[str, str]:
        """Return the header that opens the repository, with a token that is still valid. Raises StageError."""
        if not self._logins:
            return {}
        if "basic" in self._logins and "bearer" not in self._logins:
            return {"Authorization": self._account} if self._account else {}
        if time.monotonic() > self._expires:
            self._ask_token()
        return {"Authorization": f"Bearer {self._token}"}

    def ask(
        self,
        method: str,
        url: str,
        read: Callable[[BaseHTTPResponse], T],
        refusal: Refusal,
        headers: Mapping[str, str],
        content: Sent | None = None,
        good: Container[int] = READ,
    ) -> T:
        """Return what is read of the good answer to a request, and log in first if the registry asks for it.

        Raises StageError, and what ``refusal`` makes of an answer of the registry's own host.
        """

        def refused(answer: BaseHTTPResponse, is_first: bool) -> StageError | None:
            # The account would go to the token server that another host names.
            if not is_first:
                return None
            offered = ways_to_log_in(answer.headers.get("WWW-Authenticate", ""))
            if answer.status == 401 and offered and not self._logins:
                self._logins = offered
                return _ChallengedError()
            return refusal(answer, is_first)

        def asked() -> T:
            with opened(url, headers, self.header(), refused, method, content, good) as answer:
                return read(answer)

        try:
            return asked()
        except _ChallengedError:
            return asked()

    def _manifest(self, method: str, reference: str, read: Callable[[BaseHTTPResponse], T]) -> T:
        """Return what is read of the answer to a request for a manifest."""
        accepted = {"Accept": ", ".join((*MANIFESTS, *INDEXES))}
        return self.ask(method, f"{self.base}/manifests/{reference}", read, self._refusal(reference), accepted)

    def _refusal(self, reference: str) -> Refusal:
        """Return what the answers to a request for a manifest mean, if it is more than their status says."""

        def refusal(answer: BaseHTTPResponse, is_first: bool) -> StageError | None:
            if answer.status in DENIED:
                return answered(self.host, answer.status, f"{self.name}:{reference}", bool(self._account))
            if answer.status == 404:
                message = (
                    f"{self.host} has no {self.name} with the tag or digest {reference}, or shows it only to others;"
                    f" correct the URI, or name a Secret that may read it in {field.of('secretRef')}"
                )
                return StageError(Reason.SOURCE_NOT_FOUND, message)
            return None

        return refusal

    def _ask_token(self) -> None:
        """Ask the token server that the registry names: for this repository, and no more than is done there."""
        offered = self._logins.get("bearer", {})
        realm = offered.get("realm", "")
        try:
            parts = urlsplit(realm)
            safe = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc and not parts.fragment
        except ValueError:
            safe = False
        if not safe:
            raise self._invalid("names no token server with a plain https URL")
        query = {"service": offered["service"]} if "service" in offered else {}
        query["scope"] = f"repository:{self.name}:{self._actions}"
        url = f"{realm}{'&' if parts.query else '?'}{urlencode(query)}"
        account = {"Authorization": self._account} if self._account else {}
        with opened(url, {"Accept": "application/json"}, account, self._token_refusal) as asked:
            answer = body(asked, LARGEST_TOKEN, self.host)
        try:
            told = json.loads(answer)
            token = told.get("token") or told["access_token"]
            seconds = told.get("expires_in", USUAL_SECONDS)
            if not _TOKEN.fullmatch(token):
                raise ValueError
            seconds = max(USUAL_SECONDS, min(seconds, MOST_SECONDS))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise self._invalid("names a token server that gives no token") from None
        self._token = token
        self._expires = time.monotonic() + seconds - MARGIN_SECONDS

    def _token_refusal(self, answer: BaseHTTPResponse, is_first: bool) -> StageError | None:
        if answer.status not in DENIED:
            return None if answer.status >= 500 or answer.status == 429 else self._invalid("names no token server")
        advice = f"{'correct the Secret of' if self._account else 'name one in'} {field.of('secretRef')}"
        message = f"{self.host} gives no token for {self.name} with these credentials: {advice}"
        return StageError(Reason.SOURCE_ACCESS_DENIED, message)

    def _invalid(self, what: str) -> StageError:
        message = f"{self.host} {what}; use a registry that follows the OCI distribution specification"
        return StageError(Reason.SOURCE_INVALID, message)


def ways_to_log_in(header: str) -> dict[str, dict[str, str]]:
    """Return the ways to log in that a WWW-Authenticate header offers, each with its own realm and service.

    A header may have several, and several of one scheme, of which the first counts. The schemes are in lower case.
    """
    offered: dict[str, dict[str, str]] = {}
    parameters: dict[str, str] = {}
    for part in _PART.findall(header):
        scheme = _SCHEME.match(part)
        if scheme:
            parameters = {}
            offered.setdefault(scheme[1].lower(), parameters)
        if parameter := _PARAMETER.fullmatch(part, scheme.end() if scheme else 0):
            parameters.setdefault(parameter[1].lower(), parameter[2])
    return offered


class _ChallengedError(StageError):
    """The registry has said how it wants to be asked."""

    def __init__(self) -> None:
        super().__init__(Reason.SOURCE_ACCESS_DENIED, "")
