"""What it takes to serve a revision again, as a state of the history keeps it. Pure."""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.document import Document, decode

LARGEST_BYTES = 1024 * 1024
"""The most bytes of the parts without compression: a text that somebody wrote by hand may become much longer."""


@dataclass(frozen=True)
class Revision(Document):
    """A revision that served."""

    key: str
    candidate: str
    """Name of its candidate."""
    model: str
    """The name under which it serves the model."""
    server: str
    """Name of its Deployment."""
    parts: str
    """The template of the Deployment's pods and what the status told of the revision: JSON, compressed, in Base64."""

    @classmethod
    def of(
        cls, key: str, candidate: str, model: str, server: str, template: Mapping[str, Any], told: Mapping[str, Any]
    ) -> "Revision":
        """Make the record. ``template``: as the Deployment was made. ``told``: the status' parts about it."""
        text = json.dumps([template, told], sort_keys=True, separators=(",", ":"))
        return cls(key, candidate, model, server, base64.b64encode(zlib.compress(text.encode(), 9)).decode())

    @property
    def name(self) -> str:
        """KEY.SERVER, which tells it from the other servers of its key: SERVER is the hash in its Deployment's name."""
        return f"{self.key}.{self.server.rpartition('-')[2]}"

    @property
    def template(self) -> dict[str, Any] | None:
        """The template of the Deployment's pods as it was made; None if it cannot be read."""
        template, _ = self._unpacked()
        return template or None

    @property
    def told(self) -> dict[str, Any]:
        """What the status told of it."""
        _, told = self._unpacked()
        return told

    def _unpacked(self) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            text = zlib.decompressobj().decompress(base64.b64decode(self.parts), LARGEST_BYTES)
            template, told = decode(text.decode())
        except (ValueError, TypeError, zlib.error):
            return {}, {}
        return (template, told) if isinstance(template, dict) and isinstance(told, dict) else ({}, {})
