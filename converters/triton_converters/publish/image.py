"""A revision as an OCI image: the same files are the same digest, whoever packs them, and when.

The layers are tar archives as they are, because compression depends on its library: `models/NAME/...`, sorted, of no
time and no owner. Each large file is a layer of its own, which other images of the same file share; the small ones are
one. Contents are read from their files as they are hashed or sent, and only headers are kept in memory.
"""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from triton_converters.claim_store import samples
from triton_converters.claim_store.digest import digest_of
from triton_converters.claim_store.replay import RESULT_FILE
from triton_converters.claim_store.revision import DIRECTORY, damaged, digest_of_entries
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.model_repository import CONFIG as CONFIGURATION
from triton_converters.contract.predicate import AttestedGates, Predicate
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.mounted import without_links
from triton_converters.publish.push import BLOCK_BYTES, MANIFEST, Bytes, canonical, described

LAYER, CONFIG = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.config.v1+json"
MODELS, SAMPLES = "models", "samples"
"""Folders of an image: the model repository, and the reference's samples."""
LARGE_BYTES = 2**20
"""From which size on a file is a layer of its own."""
MOST_LARGE = 100
"""Files that are layers of their own: the largest ones. Docker mounts no more than 125 layers."""
ENGINE_CACHE = b"trt_engine_cache_path"
"""The parameter of config.pbtxt with the folder of a pod in which ONNX Runtime keeps engines."""
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class TarEntry:
    """A file of an image, or a directory of it."""

    name: str
    """Path in the image."""
    path: Path | None = None
    """The file; None: it is a directory."""
    length: int = 0
    """In bytes; of a directory 0."""

    def header(self) -> bytes:
        """Return its tar header: a file that all may read, or a directory that all may enter, of root."""
        entry = tarfile.TarInfo(self.name)
        entry.type, entry.mode = (tarfile.DIRTYPE, 0o755) if self.path is None else (tarfile.REGTYPE, 0o644)
        entry.size = self.length
        return entry.tobuf(tarfile.PAX_FORMAT)


@dataclass
class TarLayer:
    """A layer, which is hashed once; its digest binds what is sent later."""

    members: Sequence[TarEntry]
    digest: str = field(init=False)
    length: int = field(init=False)
    hashes: Mapping[str, str] = field(init=False)
    """The SHA-256 of each file's content, by its path in the image."""

    def __post_init__(self) -> None:
        """Read all files. Raises StageError(RepositoryDamaged) for a link or what is no regular file."""
        self._parts = list(_parts(self.members))
        self.length = sum(size for size, _ in self._parts)
        whole, hashes = hashlib.sha256(), {}
        for size, part in self._parts:
            own = hashlib.sha256()
            for block in _read(part, 0, size):
                whole.update(block)
                if isinstance(part, TarEntry):
                    own.update(block)
            if isinstance(part, TarEntry):
                hashes[part.name] = own.hexdigest()
        self.digest, self.hashes = f"sha256:{whole.hexdigest()}", hashes

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``end``; raises StageError(RepositoryDamaged) if a file shrank."""
        at = 0
        for size, part in self._parts:
            first, last = max(start - at, 0), min(end - at, size)
            if first < last:
                yield from _read(part, first, last)
            at += size


def _parts(members: Sequence[TarEntry]) -> Iterator["tuple[int, bytes | TarEntry]"]:
    """Yield the parts of a tar archive with their sizes: headers, files, padding, and the end."""
    for each in members:
        header = each.header()
        # An empty file has no bytes, and still a hash.
        padding = bytes(-each.length % _BLOCK)
        yield len(header), header
        if each.path is not None:
            yield each.length, each
            yield len(padding), padding
    yield 2 * _BLOCK, bytes(2 * _BLOCK)


def _read(part: "bytes | TarEntry", start: int, end: int) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part[start:end]
        return
    assert part.path is not None
    try:
        with open(part.path, "rb", opener=without_links) as file:
            file.seek(start)
            while start < end and (block := file.read(min(BLOCK_BYTES, end - start))):
                start += len(block)
                yield block
    except OSError as error:
        raise damaged(f"{part.path} cannot be read: {error.strerror}") from error
    if start < end:
        raise damaged(f"{part.path} became shorter")


@dataclass(frozen=True)
class PackedImage:
    """All that is pushed of an image."""

    layers: tuple[TarLayer, ...]
    config: Bytes
    manifest: bytes

    @property
    def length(self) -> int:
        """Bytes of the layers together."""
        return sum(each.length for each in self.layers)


def image(predicate: Predicate, *, with_samples: bool) -> PackedImage:
    """Return the image of a revision on the claim, whose files are those that the predicate names.

    All files are read. Raises StageError: ResultMissing or InputMissing if they are gone, RepositoryDamaged if they are
    others, or no regular files; NotPortable if the model repository names what only the claim or a node has.
    """
    revision = predicate.revision
    directory = _there(layout.revision_directory(revision.key), Reason.RESULT_MISSING)
    folders, files = _entries(directory)
    if layout.PARAMETER_SERVER in files:
        raise _not_portable(f"{layout.PARAMETER_SERVER} names folders of the claim")
    layers = _layers([*files.values()], folders)
    hashes = {name: sha256 for each in layers for name, sha256 in each.hashes.items()}
    if digest_of_entries(dict.fromkeys(folders, DIRECTORY) | hashes) != revision.content:
        raise damaged(f"{directory} on the repository claim is not what was published")
    _check_configurations(files.values())
    return _image((*layers, *([_sample_layer(predicate.gates)] if with_samples else [])))


def _image(layers: tuple[TarLayer, ...]) -> PackedImage:
    told = [each.digest for each in layers]
    config = Bytes(
        canonical(
            {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": told}}
        )
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(config, CONFIG),
        "layers": [described(each, LAYER) for each in layers],
    }
    return PackedImage(layers, config, canonical(manifest))


def _layers(files: Sequence[TarEntry], folders: Sequence[str]) -> list[TarLayer]:
    """Return the small files with the empty folders, and then each large file; each layer with its folders."""
    in_turn = sorted((each for each in files if each.length >= LARGE_BYTES), key=lambda each: (-each.length, each.name))
    large = in_turn[:MOST_LARGE]
    small = [each for each in files if each not in large]
    # An ensemble's version directory is empty, and without one a server does not load it.
    filled = {str(above) for each in files for above in PurePosixPath(each.name).parents}
    empty = [name for name in folders if name not in filled]
    first = [_layer(small, empty)] if small or empty else []
    return [*first, *(_layer([each]) for each in large)]


def _layer(files: Sequence[TarEntry], folders: Sequence[str] = ()) -> TarLayer:
    names = [*(each.name for each in files), *(f"{name}/." for name in folders)]
    above = {str(each) for name in names for each in PurePosixPath(name).parents if str(each) != "."}
    above |= set(folders)
    return TarLayer(sorted((*files, *map(TarEntry, above)), key=lambda each: each.name))


def _sample_layer(gates: AttestedGates) -> TarLayer:
    """Return the layer of the reference's samples, if they are those that the gates compared."""
    directory = _there(layout.reference_directory(gates.reference), Reason.INPUT_MISSING)
    layer = _layer(
        [TarEntry(f"{SAMPLES}/{file.name}", file.path, file.path.lstat().st_size) for file in samples.files(directory)]
    )
    hashes = {name.removeprefix(f"{SAMPLES}/"): sha256 for name, sha256 in layer.hashes.items()}
    if digest_of(hashes, single=False) != gates.samples_digest:
        raise damaged(f"{directory} on the repository claim is not what the gates compared with")
    return layer


def _there(directory: Path, reason: Reason) -> Path:
    """Return a directory of the claim without links above it. For a missing one, a kubelet mounts an empty one."""
    if not (directory.is_dir() and any(directory.iterdir())):
        raise StageError(reason, f"{directory} is no longer on the repository claim", final=False)
    return directory.resolve()


def _entries(directory: Path) -> tuple[list[str], dict[str, TarEntry]]:
    """Return the paths of all folders below a directory, and its files by their paths, but result.json."""
    folders, files = [], {}
    for path in directory.rglob("*"):
        name, found = path.relative_to(directory).as_posix(), path.lstat()
        if stat.S_ISDIR(found.st_mode):
            folders.append(name)
        elif not stat.S_ISREG(found.st_mode):
            raise damaged(f"{path} is no regular file")
        elif name != RESULT_FILE:
            files[name] = TarEntry(name, path, found.st_size)
    return sorted(folders), files


def _check_configurations(files: Iterable[TarEntry]) -> None:
    for each in files:
        if PurePosixPath(each.name).name == CONFIGURATION:
            content = b"".join(_read(each, 0, each.length))
            if ENGINE_CACHE in content or os.fsencode(layout.ROOT) in content:
                raise _not_portable(f"{each.name} names a folder of the claim or of a pod")


def _not_portable(why: str) -> StageError:
    message = f"the revision cannot be published: {why}; choose another candidate, or remove spec.publish"
    return StageError(Reason.NOT_PORTABLE, message)
