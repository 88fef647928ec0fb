"""A model repository in an image: its folder `models`, as `spec.publish` and KServe's modelcars have it.

What an image adds up to depends on who unpacks it, as soon as that folder has links, or layers that remove or replace
files of it. So such layers are refused.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_converters.claim_store.digest import SourceFile, sha256_of
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.folder import MOST_FILES
from triton_converters.fetch.http_file import download
from triton_converters.fetch.partial import check_room
from triton_converters.fetch.registry import Repository
from triton_converters.fetch.remote import ARCHIVES
from triton_converters.fetch.tar_folder import unpack_layer

MODELS = "models"
"""The folder of an image that is a source."""
TITLE = "org.opencontainers.image.title"
"""The annotation of a layer that is a file, and so of no image."""
CONFIGS = ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
"""The media types of the configuration by which an image is told from an artifact of files."""
LAYERS = (
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
)
"""The media types of layers that are read."""
PLATFORM = {"os": "linux", "architecture": "amd64"}
"""What servers run on."""
MOST_LAYERS = 500
"""More layers than any runtime mounts."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageLayer:
    """A layer of an image."""

    digest: str
    length: int
    """In bytes, as the manifest says."""


def of(repository: Repository, manifest: bytes, what: str) -> list[ImageLayer] | None:
    """Return the layers of an image, or of the one for our platform in an index; None: it is no image.

    Raises StageError(SourceInvalid) for an image that is not read, and DigestMismatch.
    """
    told = _read(manifest)
    if isinstance(told.get("manifests"), list):
        told = _read(_of_platform(repository, told["manifests"], what))
    config, layers = told.get("config"), told.get("layers")
    if not isinstance(config, dict) or config.get("mediaType") not in CONFIGS or not isinstance(layers, list):
        return None
    if any(isinstance(each, dict) and TITLE in (each.get("annotations") or {}) for each in layers):
        return None
    found = _read(_checked(repository, config, what))
    if any(found.get(name) != value for name, value in PLATFORM.items()):
        raise _unread(what, "it is of another platform")
    if len(layers) > MOST_LAYERS or not all(map(_is_layer, layers)):
        raise _unread(what, f"it has more than {MOST_LAYERS} layers, or one that is no tar archive, plain or by gzip")
    return [ImageLayer(each["digest"], each["size"]) for each in layers]


def fetch(
    repository: Repository,
    layers: Sequence[ImageLayer],
    root: Path,
    folders: Mapping[str, str],
    include: tuple[str, ...],
) -> set[str]:
    """Write the wanted files of some folders of an image below ``root``, and return their paths there.

    ``root``: a folder next to which archives are kept. ``folders``: what each of these folders is called there; empty:
    its files lie in ``root``. Raises StageError.
    """
    place = root.parent
    root.mkdir(parents=True, exist_ok=True)
    check_room(place, sum(each.length for each in layers))
    names: set[str] = set()
    for each in layers:
        archive = place / ARCHIVES / each.digest.removeprefix("sha256:") / "layer"
        if not archive.exists():
            download(repository.blob(each.digest), place, archive, repository.header, each.length)
        if sha256_of(SourceFile("layer", archive)) != archive.parent.name:
            archive.unlink()
            raise another(f"a layer of {repository.host}/{repository.name}")
        names |= unpack_layer(archive, root, folders, include)
        if len(names) > MOST_FILES:
            raise _unread(f"{repository.host}/{repository.name}", f"it holds more than {MOST_FILES} files")
    return names


def check(content: bytes, digest: str, what: str) -> None:
    """Raise StageError(DigestMismatch) unless the content has the digest."""
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise another(what)


def another(what: str) -> StageError:
    """Return the failure of content that is another one than its digest says."""
    message = f"{what} has not the SHA-256 that the registry tells; type: kubectl triton retry NAME"
    return StageError(Reason.DIGEST_MISMATCH, message)


def _of_platform(repository: Repository, manifests: list[Any], what: str) -> bytes:
    """Return the manifest for our platform."""
    for each in manifests:
        platform = each.get("platform") if isinstance(each, dict) else None
        if isinstance(platform, dict) and PLATFORM.items() <= platform.items() and _is_digest(each.get("digest")):
            manifest = repository.manifest(each["digest"])
            check(manifest, each["digest"], f"an image of {what}")
            return manifest
    raise _unread(what, "it is an index without an image of linux/amd64")


def _checked(repository: Repository, config: Mapping[str, Any], what: str) -> bytes:
    digest = config.get("digest")
    if not isinstance(digest, str) or not _is_digest(digest):
        raise _unread(what, "its configuration has no SHA-256")
    content = repository.document(digest)
    check(content, digest, f"the configuration of {what}")
    return content


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _is_layer(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("mediaType") not in LAYERS or not _is_digest(value.get("digest")):
        return False
    return type(value.get("size")) is int and 0 <= value["size"] < 2**62


def _read(document: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        found = json.loads(document)
    except (RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _unread(what: str, why: str) -> StageError:
    return StageError(Reason.SOURCE_INVALID, f"the image {what} is not read: {why}; name another one in the URI")
