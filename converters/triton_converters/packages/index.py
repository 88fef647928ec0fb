"""The package index: where it is, and how pip is told of it without anybody else seeing the password."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import certifi

from triton_converters.contract.reasons import Reason
from triton_converters.fetch import credentials
from triton_converters.fetch.connection import CA_BUNDLE, NO_PROXY, PROXY
from triton_converters.fetch.credentials import UnusableError

KEY, SECOND_KEY = "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"
"""Keys of the Secret: pip's own names for them. The first is also the environment variable with the installation's
index."""
PYPI = "https://pypi.org/simple"
SHORTEST_TOKEN = 8
"""Characters of the shortest user name, or folder of a URL, that is taken for a token: `simple` and `whl` are none."""


@dataclass(frozen=True)
class Index:
    """An index with the API of PEP 503, or two that pip takes for one: of each package it installs the newest."""

    url: str
    """With the user name and the password, if there are any."""
    second_url: str = ""
    """URL of the second one; empty: there is none."""

    @property
    def host(self) -> str:
        """Host and port of each, for messages."""
        return " or ".join(urlsplit(each).netloc.rpartition("@")[2] for each in self._urls)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Each password, and what may be a token, in place of a user name or in the path, as it stands and as meant."""
        return tuple(dict.fromkeys(secret for each in self._urls for secret in _secrets(each)))

    @property
    def _urls(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.url, self.second_url)))

    def environment(self, home: Path) -> Mapping[str, str]:
        """Return the whole environment of pip, whose home directory is ``home``."""
        bundle = home / "authorities.pem"
        own = os.environ.get(CA_BUNDLE, "")
        bundle.write_text(f"{Path(certifi.where()).read_text(encoding='utf-8')}\n{own}\n", encoding="utf-8")
        given = {name: os.environ[name] for name in ("PATH", PROXY, NO_PROXY) if os.environ.get(name)}
        second = {SECOND_KEY: self.second_url} if self.second_url else {}
        return (
            given
            | second
            | {
                "HOME": str(home),
                "LC_ALL": "C.UTF-8",
                "NO_COLOR": "1",
                "PIP_CERT": str(bundle),
                # pip then reads no configuration at all.
                "PIP_CONFIG_FILE": os.devnull,
                KEY: self.url,
            }
        )


def index() -> Index:
    """Return the index of the mounted Secret, or else the installation's; raises StageError(SourceAccessDenied).

    A Secret with a second index alone adds it to the installation's.
    """
    try:
        secret = credentials.read()
    except UnusableError as error:
        raise _unusable(error.what) from None
    given = {name: secret[name] for name in (KEY, SECOND_KEY) if name in secret}
    if secret and not given:
        given = {KEY: ""}
    for name, url in ({KEY: _installations()} | given).items():
        if not _is_https(url):
            raise _unusable(f"has no https URL under {name}")
    return Index(given.get(KEY, _installations()), given.get(SECOND_KEY, ""))


def _installations() -> str:
    return os.environ.get(KEY) or PYPI


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port or 443) > 0 and not parts.query
    except ValueError:
        good = False
    # pip would take what follows a blank for another index.
    return good and url.isascii() and url.isprintable() and " " not in url


def _secrets(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    # With its slash, a folder is no word of another sentence.
    others = [user, *(f"/{each}" for each in parts.path.split("/"))]
    tokens = [each for each in others if len(each.removeprefix("/")) >= SHORTEST_TOKEN]
    yield from (each for secret in (password or user, *tokens) for each in (secret, unquote(secret)) if each)


def _unusable(what: str) -> UnusableError:
    return UnusableError(what, Reason.SOURCE_ACCESS_DENIED, "spec.conversion.indexSecretRef")
