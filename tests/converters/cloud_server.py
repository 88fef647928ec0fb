"""A bucket with the part of Azure's and Google's APIs that downloads use: a listing in XML, and objects."""

from dataclasses import dataclass, field
from hashlib import md5
from urllib.parse import parse_qs, unquote, urlsplit

MODIFIED = "Mon, 23 Nov 2026 09:00:00 GMT"


@dataclass
class Cloud:
    """One bucket or container, `models`, below a path."""

    objects: dict[str, bytes]
    root: str
    """Path of the bucket."""
    listed: dict[str, bytes] | None = None
    """What the listing holds if not the objects."""
    queries: list[dict[str, list[str]]] = field(default_factory=list)
    """What each request asked for."""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request."""
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        self.queries.append(query | {"Authorization": [authorization]})
        name = unquote(parts.path).removeprefix(self.root).strip("/")
        if not name:
            return 200, {"Content-Type": "application/xml"}, self._listed(query.get("prefix", [""])[0]).encode()
        if name not in self.objects:
            return 404, {}, b""
        return 200, {"ETag": f'"{_tag(self.objects[name])}"', "Last-Modified": MODIFIED}, self.objects[name]

    def _listed(self, prefix: str) -> str:
        objects = self.objects if self.listed is None else self.listed
        found = {name: content for name, content in objects.items() if name.startswith(prefix)}
        google = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(content)}</Size><ETag>{_tag(content)}</ETag>"
            "<LastModified>2026-11-23T09:00:00.000Z</LastModified></Contents>"
            for name, content in found.items()
        )
        azure = "".join(
            f"<Blob><Name>{name}</Name><Properties><Last-Modified>{MODIFIED}</Last-Modified>"
            f"<Content-Length>{len(content)}</Content-Length><Content-Type>a/b</Content-Type>"
            f"<Etag>{_tag(content)}</Etag></Properties></Blob>"
            for name, content in found.items()
        )
        if self.root == "/models":
            return f"<ListBucketResult><IsTruncated>false</IsTruncated>{google}</ListBucketResult>"
        return f"<EnumerationResults><Blobs>{azure}</Blobs><NextMarker/></EnumerationResults>"


def _tag(content: bytes) -> str:
    return md5(content, usedforsecurity=False).hexdigest()
