"""What stands for a container image on this machine: the image itself, unpacked into a folder."""

import json
import os
import shutil
import tarfile
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from triton_local.runtime import Image, Mount

CONFIG = ".image.json"
"""The image's configuration, beside its files."""
OWN = frozenset({"dev", "proc", "sys", "tmp", "run"})
"""Folders at the root that a container does not have from its image: the box makes them."""
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""How a layer says that a file, or all of a folder, of the layers below is gone (OCI image layout)."""


class Images:
    """The images of an object, unpacked when they are first asked for."""

    def __init__(self, folder: Path, archives: Mapping[str, Path]) -> None:
        """``archives``: by an image's name, an archive of docker's format, whose name is another with other content."""
        self._folder = folder
        self._archives = archives
        self._lock = threading.Lock()

    def image(self, name: str) -> Image:
        """Return what stands for an image. Raises LookupError for one that is not given, OSError, ValueError."""
        named = {each.partition(":")[0]: (each, archive) for each, archive in self._archives.items()}
        repository = name.partition("@")[0]
        repository = repository if repository in named else repository.rpartition(":")[0]
        if repository not in named:
            raise LookupError(f"there is no image {name} on this machine")
        _, archive = named[repository]
        folder = self._folder / archive.stem
        with self._lock:
            if not folder.exists():
                unpack(archive, folder)
        return unpacked(folder, repository)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of docker's format. Raises OSError, ValueError if it is none."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        with tarfile.open(archive) as whole:
            (manifest,) = json.load(cast(Any, whole.extractfile("manifest.json")))
            config = json.load(cast(Any, whole.extractfile(manifest["Config"])))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=whole.extractfile(layer)) as files:
                    _add(files, temporary)
    except (KeyError, TypeError, tarfile.TarError) as error:
        raise ValueError(f"{archive} is no archive of an image: {error}") from error
    (temporary / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    temporary.rename(folder)


def _add(layer: tarfile.TarFile, root: Path) -> None:
    """Put a layer's files over those of the layers below. What is no file, folder or link is left out."""
    for member in layer:
        name = Path(member.name).name
        place = root / Path(member.name).parent
        if name == OPAQUE:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        elif name.startswith(WHITEOUT):
            _remove(place / name.removeprefix(WHITEOUT))
        elif member.isfile() or member.isdir() or member.islnk() or member.issym():
            if not member.isdir() or not (root / member.name).is_dir():
                _remove(root / member.name)
            layer.extract(member, root, set_attrs=True, filter=_kept)


def _kept(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """A member as it is unpacked: the engine's user owns it and may remove it; links lead within the image's root."""
    tarfile.tar_filter(member.replace(linkname="") if member.issym() else member, path)
    mode = member.mode | (0o700 if member.isdir() else 0o600)
    return member.replace(mode=mode & 0o755, uid=os.geteuid(), gid=os.getegid(), uname="", gname="", deep=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def unpacked(folder: Path, name: str) -> Image:
    """Return an image that was unpacked into a folder. ``name``: its repository, for its ID. Raises OSError."""
    config: Mapping[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    given = config["config"]
    entries = [each for each in sorted(folder.iterdir()) if each.name not in OWN and each.name != CONFIG]
    layers = ",".join(config["rootfs"]["diff_ids"])
    digest = sha256(layers.encode()).hexdigest()
    return Image(
        id=f"{name}@sha256:{digest}",
        mounts=tuple(Mount(each, f"/{each.name}", read_only=True) for each in entries if not each.is_symlink()),
        links={f"/{each.name}": str(each.readlink()) for each in entries if each.is_symlink()},
        environment=dict(each.split("=", 1) for each in given.get("Env") or ()),
        entrypoint=tuple(given.get("Entrypoint") or ()),
        directory=given.get("WorkingDir") or "/",
    )
