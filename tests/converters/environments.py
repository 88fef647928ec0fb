"""Virtual environments of other projects' programs, each made once of its lock file."""

import hashlib
import shutil
from pathlib import Path

from hack.devcluster.lock import exclusive
from hack.devcluster.paths import cache_home
from hack.release.archive import virtual_environment

REQUIREMENTS = Path(__file__).parents[2] / "requirements"


def environment(name: str) -> Path:
    """The virtual environment of requirements/NAME.txt, which is made if it is not there."""
    lock = REQUIREMENTS / f"{name}.txt"
    folder = cache_home() / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    with exclusive(folder.with_suffix(".lock"), f"the virtual environment of {name}"):
        if not (folder / ".done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            virtual_environment(folder, ["--require-hashes", f"--requirement={lock}"])
            (folder / ".done").touch()
    return folder
