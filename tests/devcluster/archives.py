"""Small image archives for tests."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from hack.devcluster.images import write_busybox_archive


def write_labelled_archive(path: Path, reference: str, label: str) -> None:
    """The busybox image under another name, with a label that makes it another image."""
    write_busybox_archive(path)
    with tarfile.open(path) as tar:
        files = {name: file.read() for name in tar.getnames() if (file := tar.extractfile(name))}
    (entry,) = json.loads(files.pop("manifest.json"))
    content = json.loads(files.pop(entry["Config"]))
    content["config"]["Labels"] = {"test": label}
    config = json.dumps(content).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{**entry, "Config": name, "RepoTags": [reference]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, body in {"manifest.json": manifest, name: config, **files}.items():
            header = tarfile.TarInfo(member)
            header.size = len(body)
            tar.addfile(header, io.BytesIO(body))
