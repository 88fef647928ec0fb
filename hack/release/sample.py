"""The sample model as an artifact of the registry, which the first command after an installation serves."""

import re
from pathlib import Path

from hack.deploy.command import executable
from hack.devcluster.commands import run
from hack.release.error import ReleaseError
from hack.release.images import Published, is_local

FOLDER = "manifests/samples/digits"
NAME = "digits"
SECONDS = 300
"""Bound of the push of some files of a few KB."""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def push(tree: Path, registry: str, version: str) -> Published:
    """Push the files of the sample as oras does, each a layer with its name as the title.

    Raises ReleaseError, devcluster.paths.ClusterError.
    """
    repository = f"{registry}/samples/{NAME}"
    files = sorted(path.name for path in (tree / FOLDER).iterdir() if path.is_file())
    how = ["--format", "go-template={{.digest}}", *(["--plain-http"] if is_local(registry) else [])]
    argv = [executable("oras"), "push", *how, f"{repository}:{version}", *files]
    said = run(argv, folder=tree / FOLDER, timeout=SECONDS).strip()
    if not DIGEST.fullmatch(said):
        raise ReleaseError(f"oras pushed {repository}:{version}, but names no digest: it said {said[-200:]!r}")
    return Published(NAME, repository, version, said)
