"""A server on loopback that speaks the part of the Hugging Face hub's API which downloads use."""

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """One repository, `acme/ocr`, whose branch main is at COMMIT."""

    files: dict[str, bytes]
    commit: str = COMMIT
    gated: bool = False
    token: str = ""
    """The token that opens it if it is gated."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Fields of the answer about the repository that are wrong."""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request."""
        path = unquote(urlsplit(path).path)
        found = re.fullmatch(r"/api/models/(.+)/revision/(.+)", path)
        if found and found[1] != "acme/ocr":
            return 401, {"X-Error-Code": "RepoNotFound"}, b""
        if self.gated and authorization != f"Bearer {self.token}":
            return (403 if authorization else 401), {"X-Error-Code": "GatedRepo"}, b""
        if found:
            if found[2] not in ("main", self.commit):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b""
            return 200, {}, json.dumps(self._told() | self.changes).encode()
        if found := re.fullmatch(rf"/acme/ocr/resolve/{self.commit}/(.+)", path):
            return 302, {"Location": f"/cdn/{quote(found[1])}?X-Signature=of-the-hub"}, b""
        if (found := re.fullmatch(r"/cdn/(.+)", path)) and found[1] in self.files:
            content = self.files[found[1]]
            return 200, {"ETag": f'"{sha256(content).hexdigest()}"'}, content
        return 404, {}, b""

    def _told(self) -> dict[str, Any]:
        siblings = [
            {"rfilename": name, "size": len(content)}
            | ({"lfs": {"sha256": sha256(content).hexdigest()}} if name.endswith(".safetensors") else {})
            for name, content in self.files.items()
        ]
        return {"id": "acme/ocr", "sha": self.commit, "siblings": siblings}
