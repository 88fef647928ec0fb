"""What it takes to serve a revision again, as a state of the history keeps it. Pure."""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triton_converters.contract.document import Document, DocumentError, decode
from triton_operator.observed.pod import SERVER

LARGEST_BYTES = 256 * 1024
"""The most bytes of the parts without compression: a text that somebody wrote by hand may become much longer. A spec
has at most 64 KiB, of which a template doubles the signs for variables, and a status at most 32 KiB."""
_SERVER = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[0-9a-f]{1,64}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def is_server_name(name: str) -> bool:
    """Whether this can be the name of a Deployment."""
    return _SERVER.fullmatch(name) is not None


def check_names(server: str, model: str, key: str) -> None:
    """Raise DocumentError unless these can be the names of a Deployment and of a model, and the key of a revision.

    The names are put into queries, and the key into paths of the claim.
    """
    if not is_server_name(server) or not _MODEL.fullmatch(model) or not _KEY.fullmatch(key):
        raise DocumentError("the name of a server or a model, or the key of a revision, in the record is none")


@dataclass(frozen=True)
class Revision(Document):
    """A revision that served."""

    key: str
    candidate: str
    """Name of the revision's candidate."""
    model: str
    """The name under which the revision serves the model."""
    server: str
    """Name of the revision's Deployment."""
    parts: str
    """The template of the Deployment's pods and what the status told of the revision: JSON, compressed, in Base64."""

    def __post_init__(self) -> None:
        """Raise DocumentError for names that are none: whoever may edit the ConfigMap may have written them."""
        check_names(self.server, self.model, self.key)

    @classmethod
    def of(
        cls, key: str, candidate: str, model: str, server: str, template: Mapping[str, Any], status: Mapping[str, Any]
    ) -> "Revision":
        """Make the record. ``template``: as the Deployment was made. ``status``: its parts about it."""
        text = json.dumps([template, status], sort_keys=True, separators=(",", ":"))
        return cls(key, candidate, model, server, base64.b64encode(zlib.compress(text.encode(), 9)).decode())

    @property
    def name(self) -> str:
        """KEY.SERVER, which tells it from the other servers of its key: SERVER is the hash in its Deployment's name."""
        return f"{self.key}.{self.server.rpartition('-')[2]}"

    @property
    def template(self) -> dict[str, Any] | None:
        """The template of the Deployment's pods as it was made; None if it cannot be read."""
        template, _ = self._unpacked
        return template or None

    @property
    def status(self) -> dict[str, Any]:
        """What the status told of it."""
        _, status = self._unpacked
        return status

    @property
    def image(self) -> str:
        """The server's image; empty if the record does not tell."""
        containers = _field(_field(self.template, "spec"), "containers")
        server_containers = (
            (each for each in containers if _field(each, "name") == SERVER) if isinstance(containers, list) else ()
        )
        return _text(_field(next(iter(server_containers), None), "image"))

    @property
    def format(self) -> str:
        """Format of the revision's candidate; empty if the record does not tell."""
        return _text(_field(_field(self.status, "serving"), "format"))

    @property
    def precision(self) -> str:
        """Precision of the revision's candidate; empty if the record does not tell."""
        return _text(_field(_field(self.status, "serving"), "precision"))

    @property
    def measured_at(self) -> str:
        """When the revision was measured, in RFC 3339; empty if the record does not tell."""
        return _text(_field(_field(self.status, "performance"), "measuredAt"))

    @property
    def metrics(self) -> dict[str, str]:
        """The served values of the metrics, by their names, as far as the record tells."""
        return {_text(_field(each, "metric")): _text(_field(each, "served")) for each in self._accuracy}

    @property
    def bounded(self) -> list[str]:
        """The metrics that have a threshold."""
        return [_text(_field(each, "metric")) for each in self._accuracy if _text(_field(each, "threshold"))]

    @property
    def _accuracy(self) -> list[Any]:
        entries = _field(self.status, "accuracy")
        return [each for each in (entries if isinstance(entries, list) else ()) if _text(_field(each, "metric"))]

    @property
    def source_version(self) -> str:
        """What spec.source.version was when the source was read; empty if it was not set."""
        source = _field(self.status, "source")
        return _text(_field(source, "version") or _field(source, "revision"))

    @property
    def followed_version(self) -> str:
        """The version of a followed source that it was made from; empty if the record does not tell."""
        return _text(_field(_field(_field(self.status, "source"), "serving"), "version"))

    @property
    def source_label(self) -> str:
        """The version that it was made from in words, or else `source_version`; empty if the record tells neither."""
        return _text(_field(_field(_field(self.status, "source"), "serving"), "label")) or self.source_version

    @property
    def source_digest(self) -> str:
        """Digest of the source's files; empty if the record does not tell."""
        return _text(_field(_field(self.status, "source"), "digest"))

    @cached_property
    def _unpacked(self) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            text = zlib.decompressobj().decompress(base64.b64decode(self.parts), LARGEST_BYTES)
            template, status = decode(text.decode())
        except (ValueError, TypeError, zlib.error):
            return {}, {}
        return (template, status) if isinstance(template, dict) and isinstance(status, dict) else ({}, {})


def _field(value: Any, name: str) -> Any:
    """The field of a value that anybody may have written; None if it has none."""
    return value.get(name) if isinstance(value, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
