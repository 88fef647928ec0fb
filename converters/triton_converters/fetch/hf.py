"""``hf://OWNER/REPOSITORY``: a model repository on the Hugging Face hub, or on a server with the same API.

Two requests of the hub's API are used: the files of a revision, and one file. The hub answers the second one with a
redirect to its storage. So these downloads resume, and check room and progress, as all others do.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field
from triton_converters.fetch.connection import body, opened
from triton_converters.fetch.credentials import choose
from triton_converters.fetch.folder import MOST_FILES, File, NameRefusedError, chosen, clash, missing
from triton_converters.fetch.http_file import download
from triton_converters.fetch.patience import patiently
from triton_converters.fetch.remote import FILES, Fetched, Remote

ENDPOINT = "HF_ENDPOINT"
"""Environment variable with the hub's URL."""
HUB = "https://huggingface.co"
LARGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer that are read: it is parsed in memory."""
SHORT = 12
"""Digits of a commit in a label."""
_COMMIT, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the wanted files of a revision; their version is the commit. Raises StageError."""
    repository, header = _repository(remote), _header(remote)
    commit, files = _revision(remote, remote.request.version or _name(remote))
    what = f"{repository} at {commit}"
    files = chosen(remote, files)
    for each in missing(place, commit, files, what):
        url = f"{_endpoint()}/{repository}/resolve/{commit}/{quote(each.name)}"
        download(url, place, place / FILES / each.name, lambda: header, each.bytes)
    hashes = {each.name: each.sha256 for each in files if each.sha256}
    return Fetched(commit, single=False, files=frozenset(each.name for each in files), hashes=hashes)


def look(remote: Remote) -> LookResult:
    """Return the commit of the revision, which one request tells. Raises StageError."""
    commit, _ = _revision(remote, _name(remote))
    return LookResult(commit, exact=True, label=f"{_name(remote)}, commit {commit[:SHORT]}")


def _repository(remote: Remote) -> str:
    return f"{remote.uri.host}/{remote.uri.path}"


def _name(remote: Remote) -> str:
    return remote.request.revision or "main"


def _endpoint() -> str:
    return os.environ.get(ENDPOINT) or HUB


def _header(remote: Remote) -> dict[str, str]:
    found = choose(remote.credentials, ("HF_TOKEN",))
    return {"Authorization": f"Bearer {found[0]}"} if found else {}


def _revision(remote: Remote, name: str) -> tuple[str, list[File]]:
    """Return the commit of a branch, a tag or a commit, and its files."""
    repository = _repository(remote)
    url = f"{_endpoint()}/api/models/{repository}/revision/{name}?blobs=true"
    commit, files = _read(patiently(lambda: _asked(url, _header(remote), repository)), repository)
    if _COMMIT.fullmatch(name) and commit != name:
        message = f"{repository} has another commit, {commit}, under the name {name}, which is a commit's"
        raise StageError(Reason.SOURCE_INVALID, f"{message}; correct {field.of('version')}")
    return commit, files


def _asked(url: str, header: dict[str, str], repository: str) -> bytes:
    with opened(url, {}, header, lambda answer, is_first: _refusal(answer, repository)) as answer:
        return body(answer, LARGEST_ANSWER, "the hub")


def _refusal(answer: BaseHTTPResponse, repository: str) -> StageError | None:
    """Return what the hub means by an error; None: what any server means."""
    code = answer.headers.get("X-Error-Code", "")
    if code == "GatedRepo":
        message = (
            f"{repository} is gated: accept its terms on the hub, and put a token of the account that did into the"
            f" Secret of {field.of('secretRef')}, under the key HF_TOKEN"
        )
        return StageError(Reason.SOURCE_ACCESS_DENIED, message)
    if code == "RevisionNotFound":
        message = f"{repository} has no revision of that name; correct {field.of('version')}"
        return StageError(Reason.SOURCE_NOT_FOUND, message)
    if code == "RepoNotFound":
        message = (
            f"the hub has no repository {repository}, or shows it only with another token; correct {field.of('uri')},"
            f" or put a token that may read it into the Secret of {field.of('secretRef')}, under the key HF_TOKEN"
        )
        return StageError(Reason.SOURCE_NOT_FOUND, message)
    return None


def _read(answer: bytes, repository: str) -> tuple[str, list[File]]:
    """Return the commit and its files; raises StageError if the answer is not one of the hub's."""
    try:
        told = json.loads(answer)
        commit = told["sha"]
        files = list(_files(told["siblings"]))
        if not _COMMIT.fullmatch(commit) or len(files) > MOST_FILES:
            raise ValueError
    except NameRefusedError as error:
        message = f"{repository} has a file with {error}; rename it"
        raise StageError(Reason.SOURCE_INVALID, message) from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        message = (
            f"the answer about {repository} is not one of the Hugging Face hub; correct the Helm value sources.hub"
        )
        raise StageError(Reason.SOURCE_INVALID, message) from None
    if why := clash(each.name for each in files):
        raise StageError(Reason.SOURCE_INVALID, f"{repository} has {why}; rename one of them")
    return commit, files


def _files(siblings: list[dict[str, Any]]) -> Iterator[File]:
    for each in siblings:
        sha256 = (each.get("lfs") or {}).get("sha256", "")
        if sha256 and not _SHA256.fullmatch(sha256):
            raise ValueError
        yield File(each["rfilename"], each["size"], sha256)
