"""The package index: where it is, and how pip is told of it without anybody else seeing the password."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import certifi

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import credentials
from triton_converters.fetch.connection import CA_BUNDLE, NO_PROXY, PROXY

KEY = "PIP_INDEX_URL"
"""Key of the Secret, and environment variable with the installation's index: pip's own name for it."""
PYPI = "https://pypi.org/simple"


@dataclass(frozen=True)
class Index:
    """An index with the API of PEP 503."""

    url: str
    """With the user name and the password, if there are any."""

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password, or a token in place of a user name, as it stands in the URL and as it is meant."""
        user, _, password = urlsplit(self.url).netloc.rpartition("@")[0].partition(":")
        return tuple(each for each in (password or user, unquote(password or user)) if each)

    def environment(self, home: Path) -> Mapping[str, str]:
        """Return the whole environment of pip, whose home directory is ``home``."""
        bundle = home / "authorities.pem"
        own = os.environ.get(CA_BUNDLE, "")
        bundle.write_text(f"{Path(certifi.where()).read_text(encoding='utf-8')}\n{own}\n", encoding="utf-8")
        given = {name: os.environ[name] for name in ("PATH", PROXY, NO_PROXY) if os.environ.get(name)}
        return given | {
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "PIP_CERT": str(bundle),
            # pip then reads no configuration at all.
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.url,
        }


def index() -> Index:
    """Return the index of the mounted Secret, or else the installation's; raises StageError(IndexAccessDenied)."""
    try:
        secret = credentials.read()
    except StageError as error:
        raise _refused(error.message.replace("spec.source.secretRef", "spec.conversion.indexSecretRef")) from None
    url = secret.get(KEY, "") if secret else os.environ.get(KEY) or PYPI
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port or 443) > 0 and not parts.query
    except ValueError:
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise _refused(
            f"the Secret of spec.conversion.indexSecretRef has no https URL under {KEY}; correct the Secret, then type:"
            " kubectl triton retry NAME"
        )
    return Index(url)


def _refused(message: str) -> StageError:
    return StageError(Reason.INDEX_ACCESS_DENIED, message)
