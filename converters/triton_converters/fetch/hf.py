"""``hf://OWNER/REPOSITORY``: a model repository on the Hugging Face hub, or on a server with the same API.

Two requests of the hub's API are used: the files of a revision, and one file. The hub answers the second one with a
redirect to its storage. So these downloads resume, and check room and progress, as all others do.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from urllib3 import BaseHTTPResponse

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.connection import opened
from triton_converters.fetch.credentials import choose
from triton_converters.fetch.http_file import check_room, download, patiently
from triton_converters.fetch.remote import FILES, Fetched, Remote, wanted

ENDPOINT = "HF_ENDPOINT"
"""Environment variable with the hub's URL."""
HUB = "https://huggingface.co"
LARGEST_ANSWER, MOST_FILES = 32 * 1024 * 1024, 20_000
REFUSED = ("", ".", "lost+found")
"""Parts of a path that no published source has."""
COMMIT = "commit"
"""File of the download's directory with the commit whose files are there."""
_COMMIT, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^\x00-\x1f\x7f\\]{1,1024}")


@dataclass(frozen=True)
class File:
    """A file of a repository."""

    name: str
    bytes: int
    sha256: str
    """Empty: the hub does not tell, because the file is small."""


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the wanted files of a revision; their version is the commit. Raises StageError."""
    repository = f"{remote.uri.host}/{remote.uri.path}"
    endpoint = os.environ.get(ENDPOINT) or HUB
    found = choose(remote.credentials, ("HF_TOKEN",))
    header = {"Authorization": f"Bearer {found[0]}"} if found else {}
    revision = remote.revision or "main"
    answer = patiently(
        lambda: _asked(f"{endpoint}/api/models/{repository}/revision/{revision}?blobs=true", header, repository)
    )
    commit, files = _read(answer, repository)
    files = [each for each in files if wanted(each.name, remote.include)]
    if not files:
        raise StageError(
            Reason.SOURCE_NOT_FOUND, f"{repository} at {commit} has no file that spec.source.include names"
        )
    _begin(place, commit)
    missing = [each for each in files if not _is_there(place / FILES / each.name, each)]
    check_room(place, sum(each.bytes for each in missing))
    print(f"{repository} at {commit}: {len(missing)} of {len(files)} files are to come", flush=True)
    for each in missing:
        download(
            f"{endpoint}/{repository}/resolve/{commit}/{quote(each.name)}", place, place / FILES / each.name, header
        )
    return Fetched(commit, single=False, hashes={each.name: each.sha256 for each in files if each.sha256})


def _asked(url: str, header: dict[str, str], repository: str) -> bytes:
    with opened(url, {}, header, lambda answer: _refusal(answer, repository)) as answer:
        return answer.read(LARGEST_ANSWER + 1)


def _refusal(answer: BaseHTTPResponse, repository: str) -> StageError | None:
    """Return what the hub means by an error; None: what any server means."""
    code = answer.headers.get("X-Error-Code", "")
    if code == "GatedRepo":
        message = (
            f"{repository} is gated: accept its terms on the hub, and put a token of the account that did into the"
            " Secret of spec.source.secretRef, under the key HF_TOKEN"
        )
        return StageError(Reason.SOURCE_GATED, message)
    if code == "RevisionNotFound":
        message = f"{repository} has no revision of that name; correct spec.source.revision"
        return StageError(Reason.SOURCE_NOT_FOUND, message)
    if code == "RepoNotFound":
        message = (
            f"the hub has no repository {repository}, or shows it only with another token; correct spec.source.uri, or"
            " put a token that may read it into the Secret of spec.source.secretRef, under the key HF_TOKEN"
        )
        return StageError(Reason.SOURCE_NOT_FOUND, message)
    return None


def _read(answer: bytes, repository: str) -> tuple[str, list[File]]:
    """Return the commit and its files; raises StageError if the answer is not one of the hub's."""
    try:
        if len(answer) > LARGEST_ANSWER:
            raise ValueError
        told = json.loads(answer)
        commit = told["sha"]
        files = list(_files(told["siblings"]))
        if not _COMMIT.fullmatch(commit) or len(files) > MOST_FILES:
            raise ValueError
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        message = (
            f"the answer about {repository} is not one of the Hugging Face hub; correct the Helm value sources.hub"
        )
        raise StageError(Reason.SOURCE_INVALID, message) from None
    return commit, files


def _files(siblings: list[dict[str, Any]]) -> Iterator[File]:
    for each in siblings:
        name, size, sha256 = each["rfilename"], each["size"], (each.get("lfs") or {}).get("sha256", "")
        parts = name.split("/")
        if not _NAME.fullmatch(name) or any(part in REFUSED or part.startswith("..") for part in parts):
            raise ValueError
        if not isinstance(size, int) or not 0 <= size < 2**62 or (sha256 and not _SHA256.fullmatch(sha256)):
            raise ValueError
        yield File(name, size, sha256)


def _begin(place: Path, commit: str) -> None:
    """Keep what is there of this commit, and remove what is of another one."""
    marker = place / COMMIT
    if not marker.exists() or marker.read_text(encoding="utf-8") != commit:
        shutil.rmtree(place / FILES, ignore_errors=True)
        marker.write_text(commit, encoding="utf-8")


def _is_there(path: Path, file: File) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes
