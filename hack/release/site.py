"""The documentation of a release as a site, in an archive: the pages of its commit, and copies of what they link to."""

import sys
from pathlib import Path

from hack.devcluster.commands import run
from hack.release.archive import BUILD_SECONDS, pack, virtual_environment

LOCK = "requirements/site.txt"


def name(version: str) -> str:
    """Return the name of the archive."""
    return f"{folder(version)}.tar.gz"


def folder(version: str) -> str:
    """Return the one folder of the archive, which a web server serves as it is."""
    return f"triton-operator-site-{version}"


def build(tree: Path, work: Path, output: Path, version: str) -> Path:
    """Build the site of a tree, check its links, and archive it into the folder ``output``; return the file.

    ``work``: a folder for what is between. Raises devcluster.paths.ClusterError, also for a link that leads to nothing.
    """
    lock = ["--require-hashes", f"--requirement={tree / LOCK}"]
    zensical = virtual_environment(work / "site-venv", lock) / "bin/zensical"
    built = work / "built-site"
    argv = [sys.executable, "-m", "hack.site.build", str(built), "--zensical", str(zensical)]
    run(argv, folder=tree, environment={"PYTHONPATH": str(tree)}, timeout=BUILD_SECONDS)
    return pack(built / "site", output / name(version), folder(version))
