"""Takes the files out of the checkouts, and packages from the package index; nothing of it is committed."""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from hack.devcluster.paths import cache_home
from tests.user_files.projects import Project

PACKAGES = Path(__file__).with_name("packages.txt")
STANDINS = Path(__file__).with_name("standins")
PLATFORM = [
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64"),
    *("--platform", "manylinux2014_x86_64", "--python-version", "3.13", "--only-binary", ":all:"),
]
"""The wheels for the images' Python, whatever Python runs this."""
LOGGER = "dllogger"


def extract(project: Project, examples: Path, logger: Path | None, target: Path) -> str:
    """Write the project's files, as the checkout has them, into ``target``; return the commit.

    ``examples``, ``logger``: Git repositories of DeepLearningExamples and dllogger, with or without a work tree. Raises
    subprocess.CalledProcessError if one lacks a file.
    """
    paths = [f"{project.folder}/{part}" for part in project.parts]
    _archive(examples, project.commit, paths, target, len(Path(project.folder).parts))
    if project.logger and logger is not None:
        _archive(logger, "HEAD", [LOGGER], target, 0)
    if project.standin:
        shutil.copyfile(STANDINS / project.standin, target / "standin.py")
    return _git(examples, "rev-parse", "--short", "HEAD").decode().strip()


def packages(names: Sequence[str]) -> Path:
    """Return a folder with these packages of packages.txt, unpacked. Their dependencies are listed there themselves."""
    text = "".join(line for line in _lines() if line.partition("==")[0] in names)
    folder = cache_home() / f"user-files-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    wheels, listed = partial.with_suffix(".wheels"), partial.with_suffix(".txt")
    partial.mkdir(parents=True)
    listed.write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *PLATFORM]
    subprocess.run([*argv, "--dest", str(wheels), "--requirement", str(listed)], check=True)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(partial)  # noqa: S202 - pinned by their hashes
    shutil.rmtree(wheels, ignore_errors=True)
    listed.unlink()
    partial.rename(folder)
    return folder


def _lines() -> list[str]:
    return PACKAGES.read_text(encoding="utf-8").splitlines(keepends=True)


def _archive(repository: Path, commit: str, paths: Sequence[str], target: Path, depth: int) -> None:
    """Write files of a commit, without the first ``depth`` folders of their paths."""
    with tarfile.open(fileobj=io.BytesIO(_git(repository, "archive", "--format=tar", commit, *paths))) as archive:
        for member in archive:
            name = Path(*Path(member.name).parts[depth:])
            file = archive.extractfile(member)
            if member.isfile() and file is not None:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(file.read())


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *arguments], check=True, stdout=subprocess.PIPE).stdout
