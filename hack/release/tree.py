"""The committed tree, apart from the working tree: what is built there leaves nothing next to the sources."""

import hashlib
import sys
import tarfile
from pathlib import Path

from hack.devcluster.commands import run

BUILD_SECONDS = 600
"""Bound of the build of the Python packages, with the download of its tools."""


def export(root: Path, folder: Path) -> Path:
    """Write the commit that is checked out at `root` into a new folder below `folder`."""
    archive, tree = folder / "tree.tar", folder / "tree"
    run(["git", "archive", "--format=tar", "--output", archive, "HEAD"], folder=root)
    with tarfile.open(archive) as tar:
        tar.extractall(tree, filter="data")
    return tree


def python_packages(tree: Path, output: Path) -> list[Path]:
    """Build the wheel and the sdist with `kubectl triton` into `output`; return the files."""
    before = set(output.iterdir())
    run([sys.executable, "-m", "build", "--outdir", output, tree], timeout=BUILD_SECONDS)
    return sorted(set(output.iterdir()) - before)


def checksums(folder: Path) -> str:
    """Return a line for each file of a folder, as sha256sum writes them."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
