"""Images without a registry: archives into containerd's store, and a busybox image made from Debian's."""

import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.devcluster.addresses import BUSYBOX_IMAGE
from hack.devcluster.commands import run
from hack.devcluster.paths import ClusterError, ClusterPaths

BUSYBOX = Path("/bin/busybox")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
IMPORT_SECONDS = 600
"""Bound of one import, that of the largest image on a slow disk."""


@dataclass(frozen=True)
class Archive:
    """What a docker-archive says about itself."""

    path: Path
    references: tuple[str, ...]
    image_id: str
    """Digest of the image's configuration, `sha256:...`: Kubernetes' image ID."""


def read_archive(path: Path) -> Archive:
    """Read the manifest of a docker-archive with one image.

    Raises:
        ClusterError: there is no such file, or it is no docker-archive of one named image.

    """
    try:
        with tarfile.open(path) as tar:
            member = tar.extractfile("manifest.json")
            entries = json.load(member) if member else []
            if len(entries) != 1 or not entries[0].get("RepoTags"):
                raise ClusterError(f"{path} holds {len(entries)} images or no name: save one image with its tag")
            config = tar.extractfile(entries[0]["Config"])
            digest = hashlib.sha256(config.read() if config else b"").hexdigest()
    except FileNotFoundError as error:
        raise ClusterError(f"{path} does not exist: build the image first") from error
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise ClusterError(f"{path} is no docker-archive ({error}): push to docker-archive:{path}:NAME:TAG") from error
    return Archive(path, tuple(entries[0]["RepoTags"]), f"sha256:{digest}")


def canonical(reference: str) -> str:
    """The full name of an image: Docker's registry and its library when no registry is named."""
    name, tag_separator, tag = reference.rpartition(":")
    if not tag_separator or "/" in tag:
        name, tag = reference, "latest"
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not any(mark in first for mark in ".:") and first != "localhost":
        name = f"docker.io/{name}"
    return f"{name}:{tag}"


def load_image(path: Path, paths: ClusterPaths) -> bool:
    """Import an archive for the kubelet; False when this very image has all its names there already.

    A name that is there with other content is moved to the archive's image.

    Raises:
        ClusterError: the archive is unusable, no cluster is up, or the import failed.

    """
    archive = read_archive(path)
    if not paths.containerd_socket.exists():
        raise ClusterError(f"cannot load {path}: no cluster is up, run `make cluster-up`")
    present = _stored_digests(paths)
    digest = present.get(archive.image_id)
    if digest is not None and all(present.get(canonical(name)) == digest for name in archive.references):
        return False
    moved = moved_names(archive, present)
    if moved:
        run([*ctr(paths), "images", "remove", *moved])
    run([*ctr(paths), "images", "import", path], timeout=IMPORT_SECONDS)
    return True


def link_image_store(store: Path, copy: Path) -> None:
    """Make another containerd's root of the images in a store that nothing runs on, by hard links.

    Layers and blobs never change once they are there. The databases do, so they are copied.
    """
    if not store.exists():
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    run(["cp", "--archive", "--link", store, copy], timeout=IMPORT_SECONDS)
    for database in copy.rglob("*.db"):
        if database.parent.name.startswith("io.containerd."):
            shutil.copy2(database, database.with_suffix(".new"))
            database.with_suffix(".new").replace(database)


def moved_names(archive: Archive, present: Mapping[str, str]) -> list[str]:
    """Names to remove before importing: those the archive takes over, and IDs of images that lose their last name.

    `present` maps a name or image ID to a manifest digest. A name must go first: containerd's CRI plugin
    records the image ID of a new name, and not that of an existing one with new content.
    """
    taken = {canonical(name) for name in archive.references} & set(present)
    kept = {digest for name, digest in present.items() if name not in taken and not name.startswith("sha256:")}
    lost = {present[name] for name in taken} - kept
    return sorted(taken | {name for name, digest in present.items() if name.startswith("sha256:") and digest in lost})


def ctr(paths: ClusterPaths) -> list[str]:
    """The argv prefix of containerd's client for the namespace the kubelet uses."""
    return ["ctr", "--address", str(paths.containerd_socket), "--namespace", "k8s.io"]


def _stored_digests(paths: ClusterPaths) -> dict[str, str]:
    """Name -> manifest digest of all images; each image is also named by its image ID."""
    rows = [line.split() for line in run([*ctr(paths), "images", "list"]).splitlines()[1:]]
    return {row[0]: row[2] for row in rows if len(row) > 2}


def write_busybox_archive(path: Path) -> None:
    """Write the image of sandboxes, storage helpers and tests: static busybox with all its applets.

    Raises:
        ClusterError: busybox is not installed or not static.

    """
    layer = _busybox_layer()
    content = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        # The sandbox runs this; nothing else relies on it.
        "config": {
            "Entrypoint": [],
            "Cmd": ["/bin/sleep", "2147483647"],
            "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [],
    }
    config = json.dumps(content, sort_keys=True).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [BUSYBOX_IMAGE], "Layers": ["layer.tar"]}]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for member, body in (("manifest.json", manifest), (name, config), ("layer.tar", layer)):
            _add_file(tar, member, body, 0o644)


def _busybox_layer() -> bytes:
    if not BUSYBOX.exists():
        raise ClusterError(f"{BUSYBOX} does not exist: install Debian's busybox-static")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add_file(tar, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in sorted(set(run([BUSYBOX, "--list"]).split()) - {"busybox"}):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    return buffer.getvalue()


def _add_file(tar: tarfile.TarFile, name: str, body: bytes, mode: int) -> None:
    """Add a file without times or owners, so that the same content gives the same image."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(body), mode
    tar.addfile(entry, io.BytesIO(body))
