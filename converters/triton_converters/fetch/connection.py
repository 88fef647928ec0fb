"""Connections to servers: TLS that is always verified, the installation's proxy, and redirects that stay on HTTPS."""

import contextlib
import os
import ssl
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import SplitResult, urljoin, urlsplit

import certifi
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    IncompleteRead,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field

CONNECT_SECONDS, READ_SECONDS = 15.0, 60.0
"""How long a connection, and each read from it, may take."""
TAKEN_SECONDS = 600.0
"""How long the answer to what was sent may take: a registry on a bucket copies a large file before it answers."""
ANSWER_SECONDS = 60.0
"""How long an answer about files may take. One that comes byte by byte would keep a Job until its deadline."""
MOST_REDIRECTS = 5
PROXY, NO_PROXY, CA_BUNDLE = "HTTPS_PROXY", "NO_PROXY", "SOURCE_CA_BUNDLE"
"""Environment variables: the proxy's URL, the hosts that are reached without it, separated by commas, and certificates
in PEM that are trusted besides the usual ones."""
READ, TAKEN = (200, 206), (200, 201, 202, 204)
MISSING, DENIED, BUSY = (404, 410), (401, 403), (408, 425, 429)
REDIRECTS = (301, 302, 303, 307, 308)
"""Statuses of HTTP, by what they mean for a download; TAKEN: for what is sent."""
Sent = bytes | Iterable[bytes]
Refusal = Callable[[urllib3.BaseHTTPResponse, bool], StageError | None]
"""Tells what an error of a server means, if it is more than its status says; whether the host that was asked answered,
or one that it redirects to."""


@contextlib.contextmanager
def opened(
    url: str,
    headers: Mapping[str, str],
    credentials: Mapping[str, str],
    refusal: Refusal = lambda answer, is_first: None,
    method: str = "GET",
    content: Sent | None = None,
    good: Container[int] = READ,
) -> Iterator[urllib3.BaseHTTPResponse]:
    """Yield the good answer to a request, whose body is not read yet.

    ``credentials``: headers that only the host of ``url`` is sent. ``content``: what is sent, of which no redirect is
    followed; None: nothing is. Raises StageError; it is not final for what another try may find otherwise. What goes
    wrong while the body is read is raised as StageError, too.
    """
    target = first = _parts(url)
    timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS if content is None else TAKEN_SECONDS)
    with _told(first):
        for _ in range(MOST_REDIRECTS + 1):
            is_first = _origin(target) == _origin(first)
            sent = {**headers, **(credentials if is_first else {})}
            answer = _pool(_proxy(target), os.environ.get(CA_BUNDLE, "")).request(
                method,
                target.geturl(),
                body=content,
                headers=sent,
                timeout=timeout,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            try:
                if answer.status not in REDIRECTS or content is not None:
                    if answer.status not in good:
                        refused = refusal(answer, is_first) if answer.status >= 400 else None
                        raise refused or _unexpected(answer, first, target, bool(credentials))
                    yield answer
                    return
                target = _redirected(target, answer.headers.get("Location", ""), first)
            finally:
                # Not released: what is left of a body is not read.
                answer.close()
    raise StageError(Reason.SOURCE_INVALID, f"{first.netloc} redirects more than {MOST_REDIRECTS} times")


def body(answer: urllib3.BaseHTTPResponse, most: int, who: str) -> bytes:
    """Return the body of an answer about files; of one that is longer than ``most`` bytes, the first ones.

    Whatever is cut there cannot be parsed. Raises StageError(SourceUnreachable) if it comes too slowly.
    """
    ends = time.monotonic() + ANSWER_SECONDS
    read = bytearray()
    while len(read) < most and (chunk := answer.read1(most - len(read))):
        read += chunk
        if time.monotonic() > ends:
            message = f"{who} did not send its whole answer in {ANSWER_SECONDS:g} s"
            raise StageError(Reason.SOURCE_UNREACHABLE, message, final=False)
    return bytes(read)


def is_same_origin(one: str, other: str) -> bool:
    """Whether two URLs are of one host and port, which alone gets its credentials. Raises StageError(SourceInvalid)."""
    return _origin(_parts(one)) == _origin(_parts(other))


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise StageError(Reason.SOURCE_INVALID, "the URI has a host or a port that cannot be") from None
    return parts


def _origin(parts: SplitResult) -> tuple[str | None, int]:
    return parts.hostname, parts.port or 443


def _redirected(target: SplitResult, location: str, first: SplitResult) -> SplitResult:
    """Return the next target. Its words are the server's, and may hold a signature: no message quotes them."""
    try:
        parts = urlsplit(urljoin(target.geturl(), location))
        safe = parts.scheme == "https" and bool(parts.hostname) and parts.username is None and (parts.port or 443) > 0
    except ValueError:
        safe = False
    if not safe or not location.isascii() or not location.isprintable():
        message = f"{first.netloc} redirects to something that is not a plain https URL; use a server that does not"
        raise StageError(Reason.SOURCE_INVALID, message)
    return parts


def _unexpected(
    answer: urllib3.BaseHTTPResponse, first: SplitResult, target: SplitResult, credentials: bool
) -> StageError:
    who = (
        first.netloc if _origin(first) == _origin(target) else f"{target.hostname}, to which {first.netloc} redirects,"
    )
    return answered(who, answer.status, first.path, credentials)


def answered(who: str, status: int, what: str, credentials: bool) -> StageError:
    """Return the failure that an HTTP status means. ``what`` was asked for; ``credentials``: whether with any."""
    said = f"{who} answered {status} to the request for {what}"
    if status in DENIED:
        advice = (
            f"correct the Secret of {field.of('secretRef')}, or what it is allowed to read"
            if credentials
            else f"name a Secret with credentials in {field.of('secretRef')}"
        )
        return StageError(Reason.SOURCE_ACCESS_DENIED, f"{said}; {advice}")
    if status in MISSING:
        return StageError(Reason.SOURCE_NOT_FOUND, f"{said}: there is no such file")
    if status >= 500 or status in BUSY:
        return StageError(Reason.SOURCE_UNREACHABLE, said, final=False)
    return StageError(Reason.SOURCE_INVALID, said)


def untrusted(who: str, why: str) -> StageError:
    """Return the failure of a certificate."""
    message = (
        f"the certificate of {who} is not trusted: {why}; correct it, or ask the administrator to add its authority to"
        " the Helm value sources.caBundle"
    )
    return StageError(Reason.SOURCE_CERTIFICATE_INVALID, message)


def broken(who: str) -> StageError:
    """Return the failure of a connection that ended too early."""
    message = f"{who} closed the connection before its whole answer came"
    return StageError(Reason.SOURCE_TRUNCATED, message, final=False)


def no_part(who: str) -> StageError:
    """Return the failure of a server that was asked to go on, and sends something else than the rest."""
    message = f"{who} did not send the part of the file that was asked for"
    return StageError(Reason.SOURCE_TRUNCATED, message, final=False)


def unreachable(who: str, why: str) -> StageError:
    """Return the failure of a connection that did not come about."""
    advice = "check the host's name, and the Helm values networkPolicy.sources and sources.proxy"
    return StageError(Reason.SOURCE_UNREACHABLE, f"{who} cannot be reached: {why}; {advice}", final=False)


@contextlib.contextmanager
def _told(first: SplitResult) -> Iterator[None]:
    """Raise what the library raises as a StageError that names the host."""
    try:
        yield
    except HTTPError as error:
        raise _failure(error, first) from None


def _failure(error: HTTPError, first: SplitResult) -> StageError:
    host = first.netloc
    cause = error.args[0] if error.args else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return untrusted(host, cause.verify_message)
    if isinstance(error, IncompleteRead | ProtocolError):
        return broken(host)
    words = {
        NameResolutionError: "its name does not resolve",
        NewConnectionError: "the connection is refused",
        ConnectTimeoutError: f"no connection came about in {CONNECT_SECONDS:g} s",
        ReadTimeoutError: f"nothing came for {READ_SECONDS:g} s",
        ProxyError: "the proxy of the Helm value sources.proxy does not connect to it",
        SSLError: "it does not speak TLS as it should",
    }
    why = next((each for kind, each in words.items() if isinstance(error, kind)), "the connection broke")
    return unreachable(host, why)


def _proxy(target: SplitResult) -> str:
    """Return the proxy's URL for the target; empty: none."""
    domains = (each.strip().lower().lstrip(".") for each in os.environ.get(NO_PROXY, "").split(","))
    bypassed = any(f".{target.hostname}".endswith(f".{domain}") for domain in domains if domain)
    return "" if bypassed else os.environ.get(PROXY, "")


@cache
def _pool(proxy: str, bundle: str) -> urllib3.PoolManager:
    tls = ssl.create_default_context(cafile=certifi.where())
    if bundle:
        tls.load_verify_locations(cadata=bundle)
    if proxy:
        return urllib3.ProxyManager(proxy, ssl_context=tls, proxy_ssl_context=tls)
    return urllib3.PoolManager(ssl_context=tls)
