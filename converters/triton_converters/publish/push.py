"""The pushing half of a registry: blobs in one request, or in parts after a break, and manifests.

Whatever the registry says is hostile: an upload goes on at no other host, and no message holds a URL that it made.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.connection import DENIED, TAKEN, Sent, body, is_same_origin
from triton_converters.fetch.patience import patiently
from triton_converters.fetch.progress import size
from triton_converters.fetch.registry import LARGEST_MANIFEST, Repository

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
PART_BYTES = 16 * 2**20
"""Size of a part after a break. Buckets behind registries want 5 MiB and more of each but the last."""
BLOCK_BYTES = 2**20
"""Most that is read of a file at once."""
LARGEST_ERROR = 16 * 1024
"""Most bytes of an error that are read."""
FULL = re.compile(rb"no space left|quota|insufficient storage", re.IGNORECASE)
"""What registries say that are full, under the statuses 403, 412 and 500 too."""
OF_REGISTRY = {
    Reason.SOURCE_ACCESS_DENIED: Reason.REGISTRY_ACCESS_DENIED,
    Reason.SOURCE_CERTIFICATE_INVALID: Reason.REGISTRY_CERTIFICATE_INVALID,
    Reason.SOURCE_INVALID: Reason.REGISTRY_INVALID,
    Reason.SOURCE_NOT_FOUND: Reason.REGISTRY_NOT_FOUND,
    Reason.SOURCE_TRUNCATED: Reason.REGISTRY_UNREACHABLE,
    Reason.SOURCE_UNREACHABLE: Reason.REGISTRY_UNREACHABLE,
}
"""What the failures of a connection are called where it is one to a registry that is pushed to."""
T = TypeVar("T")
_RANGE = re.compile(r"(?:bytes=)?0-(\d{1,18})")
_OCTETS = {"Content-Type": "application/octet-stream"}


class Blob(Protocol):
    """What a registry keeps under its digest."""

    @property
    def digest(self) -> str:
        """``sha256:HEX``."""

    @property
    def length(self) -> int:
        """How many bytes it has."""

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``end``."""


@dataclass(frozen=True)
class Bytes:
    """A blob in memory."""

    content: bytes

    @property
    def digest(self) -> str:
        """``sha256:HEX`` of the content."""
        return digest_of(self.content)

    @property
    def length(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``end``."""
        yield self.content[start:end]


def digest_of(content: bytes) -> str:
    """Return ``sha256:HEX``."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def canonical(document: Any) -> bytes:
    """Return JSON that is the same for the same document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def described(blob: Blob, media: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a manifest says of a blob."""
    told = {"mediaType": media, "digest": blob.digest, "size": blob.length}
    return told | ({"annotations": dict(annotations)} if annotations else {})


class Registry:
    """A repository that is written to; every method raises StageError."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.place = f"{repository.host}/{repository.name}"

    def put(self, blob: Blob) -> None:
        """Push a blob, unless the registry has it; an upload that breaks goes on where the registry says."""
        url = self.repository.blob(blob.digest)
        if patiently(lambda: self.ask("HEAD", url, lambda answer: answer.status, good=(200, 404))) == 200:
            return
        print(f"push {blob.digest}: {size(blob.length)}", flush=True)
        upload = _Upload(self, blob)
        patiently(upload.attempt, lambda: upload.have)

    def put_manifest(self, content: bytes, media: str, reference: str) -> Mapping[str, str]:
        """Push a manifest under a tag or its digest; returns the answer's headers."""
        url = f"{self.repository.base}/manifests/{reference}"
        headers = {"Content-Type": media}
        return patiently(lambda: self.ask("PUT", url, lambda answer: answer.headers, headers, content))

    def manifest(self, reference: str) -> bytes | None:
        """Return the manifest or index of a tag or a digest; None: there is none."""
        return self._document(f"{self.repository.base}/manifests/{reference}", f"{MANIFEST}, {INDEX}")

    def referrers(self, digest: str) -> bytes | None:
        """Return the index of what refers to a manifest; None: the registry keeps none."""
        return self._document(f"{self.repository.base}/referrers/{digest}", INDEX, absent=(400, 404, 405, 501))

    def get(self, digest: str) -> bytes | None:
        """Return a small blob; None: the registry has none with that digest."""
        found = self._document(self.repository.blob(digest), "*/*")
        return found if found is not None and digest_of(found) == digest else None

    def _document(self, url: str, accepted: str, absent: tuple[int, ...] = (404,)) -> bytes | None:
        """Return what the registry has at a URL, of at most LARGEST_MANIFEST bytes; None: nothing."""

        def read(answer: BaseHTTPResponse) -> bytes | None:
            return None if answer.status in absent else body(answer, LARGEST_MANIFEST + 1, self.place)

        found = patiently(lambda: self.ask("GET", url, read, {"Accept": accepted}, good=(200, *absent)))
        if found is not None and len(found) > LARGEST_MANIFEST:
            raise invalid(self.place, f"answers with a document of more than {LARGEST_MANIFEST} bytes")
        return found

    def ask(
        self,
        method: str,
        url: str,
        read: Callable[[BaseHTTPResponse], T],
        headers: Mapping[str, str] | None = None,
        content: Sent | None = None,
        good: tuple[int, ...] = TAKEN,
    ) -> T:
        """Return what is read of the good answer to a request."""
        with told():
            return self.repository.ask(method, url, read, self._refused, headers or {}, content, good)

    def _refused(self, answer: BaseHTTPResponse, is_first: bool) -> StageError | None:
        """Return what an error of the registry means."""
        status = answer.status
        said = f"{self.place} answered {status} to the push"
        if status == 507 or FULL.search(body(answer, LARGEST_ERROR, self.place)):
            return StageError(Reason.REGISTRY_FULL, f"{said}: it is full; make room, or raise the quota", final=False)
        found = {
            404: (Reason.REGISTRY_NOT_FOUND, "create the repository or the project, or correct spec.publish.uri"),
            413: (Reason.REGISTRY_LIMIT, "raise the size of requests that the registry, or a proxy before it, takes"),
            **dict.fromkeys(DENIED, (Reason.REGISTRY_ACCESS_DENIED, _SECRET)),
        }.get(status)
        if found is not None:
            return StageError(found[0], f"{said}; {found[1]}")
        if status in (408, 425, 429):
            return StageError(Reason.REGISTRY_BUSY, f"{said}; it takes no more for now", final=False)
        return None


_SECRET = "let the Secret of spec.publish.secretRef have an account that may push there"  # noqa: S105 - words


def invalid(place: str, what: str) -> StageError:
    """Return the failure of a registry that does what none may do."""
    return StageError(Reason.REGISTRY_INVALID, f"{place} {what}; use a registry that follows the OCI specification")


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise the StageErrors of a connection as those of a registry that is pushed to."""
    try:
        yield
    except StageError as error:
        raise StageError(OF_REGISTRY.get(error.reason, error.reason), error.message, final=error.final) from None


class _Upload:
    """One blob on its way."""

    def __init__(self, registry: Registry, blob: Blob) -> None:
        self._registry, self._blob = registry, blob
        self._begin = f"{registry.repository.base}/blobs/uploads/"
        self._at = ""
        """The URL at which it goes on; empty: it is not begun."""
        self.have = 0
        """Bytes that the registry has told to have."""

    def attempt(self) -> None:
        """Send all, or what is missing. Raises StageError; the next attempt goes on if it is not final."""
        if self._at:
            self._go_on()
            return
        # A registry may know the blob from another repository.
        mounted = f"{self._begin}?mount={self._blob.digest}"
        self._at = self._registry.ask("POST", mounted, self._begun, {}, b"", (201, 202))
        if self._at:
            self._finish(self._blob.read(0, self._blob.length), self._blob.length)

    def _go_on(self) -> None:
        found = self._registry.ask("GET", self._at, self._told, good=(204, 404))
        if found is None:
            self._at, self.have = "", 0
            message = f"{self._registry.place} has lost the upload of {self._blob.digest}"
            raise StageError(Reason.REGISTRY_UNREACHABLE, message, final=False)
        self.have = found
        print(f"push {self._blob.digest}: goes on after {size(found)}", flush=True)
        while self.have < self._blob.length:
            end = min(self.have + PART_BYTES, self._blob.length)
            headers = _OCTETS | {"Content-Range": f"{self.have}-{end - 1}", "Content-Length": str(end - self.have)}
            content = self._blob.read(self.have, end)
            self._at = self._registry.ask("PATCH", self._at, self._next, headers, content, (202, 204))
            self.have = end
        self._finish(b"", 0)

    def _finish(self, content: Sent, length: int) -> None:
        url = f"{self._at}{'&' if urlsplit(self._at).query else '?'}digest={self._blob.digest}"
        headers = _OCTETS | {"Content-Length": str(length)}
        self._registry.ask("PUT", url, lambda _: None, headers, content, (201, 204))

    def _begun(self, answer: BaseHTTPResponse) -> str:
        return "" if answer.status == 201 else self._next(answer)

    def _told(self, answer: BaseHTTPResponse) -> int | None:
        """Return how many bytes the registry has; None: it knows no such upload."""
        if answer.status == 404:
            return None
        if "Location" in answer.headers:
            self._at = self._next(answer)
        found = _RANGE.fullmatch(answer.headers.get("Range", ""))
        last = int(found[1]) if found else 0
        if last >= self._blob.length > 0:
            raise invalid(self._registry.place, "tells more of an upload than was sent")
        # Of nothing, registries say 0-0.
        return last + 1 if last else 0

    def _next(self, answer: BaseHTTPResponse) -> str:
        """Return where the upload goes on: at the same host over HTTPS alone."""
        location = answer.headers.get("Location", "")
        try:
            url = urljoin(self._begin, location)
            parts = urlsplit(url)
            is_safe = parts.scheme == "https" and "@" not in parts.netloc and is_same_origin(url, self._begin)
        except ValueError:
            is_safe = False
        if not location or not is_safe or parts.fragment or not (location.isascii() and location.isprintable()):
            raise invalid(self._registry.place, "leads an upload to something that is not its own https URL")
        return url
