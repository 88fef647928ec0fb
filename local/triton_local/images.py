"""What stands for a container image on this machine: the image itself, unpacked into a folder."""

import fcntl
import json
import os
import shutil
import tarfile
from collections.abc import Mapping
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from typing import Any, cast

from triton_local.runtime import Image, Mount

CONFIG = ".image.json"
"""The image's configuration, beside its files."""
OWN = frozenset({"dev", "proc", "sys", "tmp", "run"})
"""Folders at the root that a container does not have from its image: the box makes them."""
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""How a layer says that a file, or all of a folder, of the layers below is gone (OCI image layout)."""


class Images:
    """Images by the digests of their configurations, each unpacked when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        """``folder``: keeps what is unpacked, for all engines of the user."""
        self._folder = folder
        self._archives: dict[str, Path] = {}

    def add(self, name: str, archive: Path) -> str:
        """Add an archive of docker's format, and return the image's name with the digest of its configuration.

        Raises OSError, and ValueError for what is no such archive.
        """
        with _opened(archive) as whole:
            _, config = _described(whole, archive)
        pinned = f"{name.partition('@')[0]}@sha256:{sha256(config).hexdigest()}"
        self._archives[pinned] = archive
        return pinned

    def image(self, name: str) -> Image:
        """Return what stands for an image. Raises LookupError for one that was not added; OSError, ValueError."""
        if name not in self._archives:
            raise LookupError(f"image {name} is not on this machine")
        folder = self._folder / name.rpartition(":")[2]
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not folder.exists():
                unpack(self._archives[name], folder)
        finally:
            os.close(descriptor)
        return unpacked(folder, name)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of docker's format, whole or not at all; one at a time.

    Raises OSError; ValueError if it is none, has other layers than its configuration names, or a name that leads out of
    the folder.
    """
    temporary = folder.with_name(f".{folder.name}")
    # What one left that was killed: nobody else unpacks now.
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        with _opened(archive) as whole:
            layers, config = _described(whole, archive)
            # Whoever knows the configuration of an image must not have other layers stand for it.
            for layer, digest in zip(layers, json.loads(config)["rootfs"]["diff_ids"], strict=True):
                with tarfile.open(fileobj=whole.extractfile(layer)) as files:
                    uncompressed = cast(Any, files.fileobj)
                    uncompressed.seek(0)
                    if f"sha256:{file_digest(uncompressed, 'sha256').hexdigest()}" != digest:
                        raise ValueError(f"the layer {layer} is not the one that the image's configuration names")
                    for member in files:
                        _add(files, member, temporary.resolve())
        # A layer may have put a link there.
        _remove(temporary / CONFIG)
        (temporary / CONFIG).write_bytes(config)
        temporary.rename(folder)
    except (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, tarfile.TarError) as error:
        raise ValueError(f"{archive} is no archive of an image: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _opened(archive: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(archive)
    except tarfile.TarError as error:
        raise ValueError(f"{archive} is no archive of an image: {error}") from error


def _described(whole: tarfile.TarFile, archive: Path) -> tuple[list[str], bytes]:
    """The names of the layers, the lowest first, and the configuration."""
    try:
        (manifest,) = json.load(cast(Any, whole.extractfile("manifest.json")))
        return list(manifest["Layers"]), cast(Any, whole.extractfile(manifest["Config"])).read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{archive} is no archive of an image: {error}") from error


def _add(layer: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    """Put a member of a layer over what the layers below have. What is no file, folder or link is left out."""
    path = PurePosixPath(member.name)
    gone = path.name.removeprefix(WHITEOUT)
    if path.is_absolute() or ".." in (*path.parts, gone):
        raise ValueError(f"the image has a file {member.name!r}, which leads out of it")
    if not path.name:
        return
    place = _within(root, path.parent) / path.name
    if path.name == OPAQUE:
        for each in place.parent.iterdir():
            _remove(each)
    elif path.name.startswith(WHITEOUT):
        _remove(place.with_name(gone))
    elif member.isdir():
        if not place.is_dir() or place.is_symlink():
            _remove(place)
            place.mkdir()
        place.chmod(member.mode & 0o755 | 0o700)
    elif member.issym():
        _remove(place)
        place.symlink_to(member.linkname)
    elif member.islnk():
        target = PurePosixPath(member.linkname)
        source = _within(root, target.parent) / target.name
        _remove(place)
        os.link(source, place, follow_symlinks=False)
    elif member.isfile():
        _remove(place)
        with place.open("xb") as file:
            shutil.copyfileobj(cast(Any, layer.extractfile(member)), file)
        place.chmod(member.mode & 0o755 | 0o600)


def _within(root: Path, path: PurePosixPath) -> Path:
    """A folder of the image, made if it is not there. Raises ValueError if a link leads out of the image."""
    place = root
    for part in path.parts:
        place = (place / part).resolve()
        if not place.is_relative_to(root):
            raise ValueError(f"the image has a file below {str(path)!r}, which a link leads out of it")
        place.mkdir(exist_ok=True)
    return place


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def unpacked(folder: Path, name: str) -> Image:
    """Return an image that was unpacked into a folder. ``name``: with its digest. Raises OSError."""
    config: Mapping[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["config"]
    entries = [each for each in sorted(folder.iterdir()) if each.name not in OWN and each.name != CONFIG]
    return Image(
        id=name,
        mounts=tuple(Mount(each, f"/{each.name}", read_only=True) for each in entries if not each.is_symlink()),
        links={f"/{each.name}": str(each.readlink()) for each in entries if each.is_symlink()},
        environment=dict(each.split("=", 1) for each in config.get("Env") or ()),
        entrypoint=tuple(config.get("Entrypoint") or ()),
        directory=config.get("WorkingDir") or "/",
    )
