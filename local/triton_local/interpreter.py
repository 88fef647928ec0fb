"""The interpreter that runs all that is installed, and what it says of itself."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

FIRST_PYTHON, LAST_PYTHON = (3, 11, 1), (3, 13)
"""The first that the converters run on, and the last for which server 2.51 has a Python backend."""
_FACTS = """
import json, sys, sysconfig
from importlib.metadata import distributions
library = sysconfig.get_config_var("LIBDIR") + "/" + (sysconfig.get_config_var("INSTSONAME") or "")
packages = sorted(f"{each.name}=={each.version}" for each in distributions())
found = [each for each in sys.path if each.endswith("-packages")]
own = [sys._base_executable, sys.base_prefix, sys.prefix, found]
print(json.dumps([*own, sys.version_info[:3], library, packages]))
"""


class InstallError(Exception):
    """The programs cannot be installed; the message says why and what to do."""


@dataclass(frozen=True)
class Python:
    """An interpreter of this machine, and the environment with its packages."""

    executable: Path
    """The interpreter itself, also of a virtual environment."""
    home: Path
    """The folder with its standard library (sys.base_prefix)."""
    prefix: Path
    """The virtual environment, or ``home``."""
    packages: tuple[Path, ...]
    """The folders with the environment's packages: its own first, then the system's if it has them too."""
    version: tuple[int, ...]
    library: Path
    """The shared library that tritonserver starts Python from."""
    installed: tuple[str, ...]
    """The environment's packages, such as numpy==2.2.4."""


def python(executable: str) -> Python:
    """Return what an interpreter says of itself. Raises InstallError if it does not serve."""
    try:
        said = subprocess.run([executable, "-I", "-c", _FACTS], capture_output=True, check=True, timeout=30)
        own, home, prefix, packages, version, library, installed = json.loads(said.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InstallError(f"{executable} is no Python that runs: {error}") from error
    found = Python(
        Path(own), Path(home), Path(prefix), tuple(map(Path, packages)), tuple(version), Path(library), tuple(installed)
    )
    if not (found.version >= FIRST_PYTHON and found.version[:2] <= LAST_PYTHON):
        first, last = text(FIRST_PYTHON), text(LAST_PYTHON)
        raise InstallError(f"{executable} is Python {text(found.version)}; install with one from {first} to {last}")
    if not found.library.is_file():
        raise InstallError(
            f"{found.library} does not exist, from which tritonserver starts Python; on Debian and Ubuntu:"
            f" sudo apt-get install libpython{text(found.version[:2])}"
        )
    return found


def text(version: tuple[int, ...]) -> str:
    """Return a version as people write it, such as 3.11.1."""
    return ".".join(map(str, version))
