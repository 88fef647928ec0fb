"""``oci://REGISTRY/REPOSITORY:TAG``: an artifact of a registry, as ORAS and similar programs push files, or an image.

Each layer of an artifact is a file, named by its title, or a folder in a tar archive. The library oras is not used: it
does not compare what it downloads with its digest, and sends the account wherever the registry says, over plain HTTP
too.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_converters.claim_store import sources
from triton_converters.claim_store.digest import SourceFile, sha256_of
from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import image
from triton_converters.fetch.docker_config import account
from triton_converters.fetch.folder import MOST_FILES, File, chosen, clash, missing
from triton_converters.fetch.http_file import download
from triton_converters.fetch.registry import LARGEST_MANIFEST, MANIFESTS, Repository
from triton_converters.fetch.remote import ARCHIVES, FILES, Fetched, Remote, check_named, wanted
from triton_converters.fetch.tar_folder import unpack

UNPACK = "io.deis.oras.content.unpack"
"""The annotation by which ORAS tells an archive that it made of a folder from a file that is an archive."""
ARCHIVE = "application/vnd.oci.image.layer.v1.tar+gzip"
"""The media type of a folder, if the annotation is missing."""
SHORT = len("sha256:") + 12
"""Characters of a digest in a label."""
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_REFERENCE = re.compile(r"(.+?)(?::|@)([^/]+)")


@dataclass(frozen=True)
class Layer(File):
    """A file, or an archive with the folder ``name``; raises ValueError for what no source has."""

    is_folder: bool = False


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the wanted files of an artifact; their version is the manifest's digest. Raises StageError."""
    repository, reference = _located(remote)
    artifact = f"{repository.host}/{repository.name}"
    manifest, version = _manifest(repository, remote.request.version or reference, artifact)
    what = f"{artifact} at {version}"
    if (found := image.of(repository, manifest, what)) is not None:
        missing(place, version, (), what)
        include = remote.request.include
        unpacked = image.fetch(repository, found, place / FILES, {image.MODELS: ""}, include)
        names = {each for each in unpacked if wanted(each, include)}
        check_named(names, remote.request)
        return Fetched(version, single=False, files=frozenset(names))
    layers = _read(manifest, what)
    files, folders = ([each for each in layers if each.is_folder is kind] for kind in (False, True))
    # What an archive holds is known once it is here, so with one all is taken.
    include = remote.request.include
    files = [each for each in files if wanted(each.name, include)] if folders else chosen(remote, files)
    hashes = {each.name: each.sha256 for each in files}
    # The manifest alone proves nothing: whoever runs a registry writes any digest into one.
    if not folders and (digest := sources.find(hashes, single=False)) and sources.is_received(digest):
        return Fetched(version, single=False, hashes=hashes, published=digest)
    archives = {place / ARCHIVES / each.sha256 / each.name: each for each in folders}
    lacking = {place / FILES / each.name: each for each in missing(place, version, files, what)}
    lacking |= {path: each for path, each in archives.items() if not path.exists()}
    for target, each in lacking.items():
        download(repository.blob(f"sha256:{each.sha256}"), place, target, repository.header, each.bytes)
    names = _unpacked(archives, set(hashes), place, remote, what)
    check_named(names, remote.request)
    return Fetched(version, single=False, files=frozenset(names), hashes=hashes)


def look(remote: Remote) -> LookResult:
    """Return the digest of the tag's manifest. Raises StageError.

    One HEAD request tells it, which registries do not count as a pull, after those that log in.
    """
    repository, reference = _located(remote)
    digest = repository.digest(reference)
    if not _DIGEST.fullmatch(digest):
        _, digest = _manifest(repository, reference, f"{repository.host}/{repository.name}")
    label = digest if reference == digest else f"tag {reference}, {digest[:SHORT]}..."
    return LookResult(digest, exact=True, label=label)


def _located(remote: Remote) -> tuple[Repository, str]:
    """Return the repository, and the tag or the digest."""
    found = _REFERENCE.fullmatch(remote.uri.path)
    assert found is not None
    name, reference = found.groups()
    return Repository(remote.uri.host, name, account(remote.credentials, remote.uri.host, name)), reference


def _manifest(repository: Repository, reference: str, what: str) -> tuple[bytes, str]:
    """Return a manifest and its digest, which is the one that was asked for if the reference is a digest."""
    manifest = repository.manifest(reference)
    if _DIGEST.fullmatch(reference):
        image.check(manifest, reference, f"the manifest of {what}")
    return manifest, f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _unpacked(archives: Mapping[Path, Layer], names: set[str], place: Path, remote: Remote, what: str) -> set[str]:
    """Unpack the wanted files of folders; return their names with those of the files that are there."""
    for archive, folder in archives.items():
        if sha256_of(SourceFile(folder.name, archive)) != folder.sha256:
            raise image.another(f"{folder.name} of {what}")
        names |= unpack(archive, place / FILES, folder.name, remote.request.include)
        if len(names) > MOST_FILES:
            raise StageError(Reason.SOURCE_INVALID, f"{what} holds more than {MOST_FILES} files; push fewer")
    return names


def _read(manifest: bytes, what: str) -> list[Layer]:
    """Return the artifact's layers; raises StageError for what is no artifact of files."""
    try:
        if len(manifest) > LARGEST_MANIFEST:
            raise ValueError("a manifest that is too long")
        told = json.loads(manifest)
        if told.get("mediaType", MANIFESTS[0]) not in MANIFESTS or "layers" not in told:
            raise ValueError("no layers, as an index of several images has none")
        layers = list(_layers(told["layers"]))
        if len(layers) > MOST_FILES:
            raise ValueError("too many layers")
        if why := clash(each.name for each in layers):
            raise ValueError(why)
    except ValueError as error:
        why = "no manifest in JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else str(error)
        raise _no_artifact(what, why) from None
    except (AttributeError, KeyError, RecursionError, TypeError):
        raise _no_artifact(what, "a manifest with a wrong structure") from None
    return layers


def _no_artifact(what: str, why: str) -> StageError:
    message = f"{what} is not an artifact of files: it has {why}; push the files with `oras push`"
    return StageError(Reason.SOURCE_INVALID, message)


def _layers(layers: list[dict[str, Any]]) -> Iterator[Layer]:
    for each in layers:
        notes = each.get("annotations") or {}
        if image.TITLE not in notes:
            raise ValueError(f"a layer without the annotation {image.TITLE}")
        digest = _DIGEST.fullmatch(each["digest"])
        if digest is None:
            raise ValueError("a layer without a SHA-256")
        is_folder = notes[UNPACK] == "true" if UNPACK in notes else each.get("mediaType") == ARCHIVE
        yield Layer(
            notes[image.TITLE].removesuffix("/") if is_folder else notes[image.TITLE],
            each["size"],
            digest[1],
            is_folder,
        )
