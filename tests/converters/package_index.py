"""An index of Python packages (PEP 503), and wheels made of text."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ROOT = "/simple/"


def wheel(
    name: str, version: str = "1.0", requires: Sequence[str] = (), files: Mapping[str, str] | None = None
) -> tuple[str, bytes]:
    """Return the name and content of a wheel; without ``files`` it holds a module that knows its version."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents = {
        **(files if files is not None else {f"{name}.py": f"VERSION = {version!r}\n"}),
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in contents.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{name}-{version}-py3-none-any.whl", buffer.getvalue()


@dataclass
class PackageIndex:
    """Answers pip."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Wheels and archives by their names, which begin with the package's name and a dash."""
    authorization: str = ""
    """The Authorization header that is asked for; empty: none."""
    status: int = 200
    """Of every answer that is not about something missing."""

    @classmethod
    def of(cls, *wheels: tuple[str, bytes]) -> "PackageIndex":
        return cls(dict(wheels))

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if self.authorization and authorization != self.authorization:
            return 401, {"WWW-Authenticate": 'Basic realm="packages"'}, b""
        if self.status != 200:
            return self.status, {}, b""
        if path.startswith("/files/") and (content := self.files.get(path.removeprefix("/files/"))):
            return 200, {"Content-Type": "application/octet-stream"}, content
        wanted = path.removeprefix(ROOT).strip("/")
        named = (each for each in self.files if each.replace("_", "-").lower().startswith(f"{wanted}-"))
        links = [f'<a href="/files/{name}">{name}</a>' for name in named]
        return (200, {"Content-Type": "text/html"}, "\n".join(links).encode()) if links else (404, {}, b"")


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
