"""The lock files agree with what they were made from: `make lock` was run after the last change.

No index is asked. A lock file names for each package who wanted it; these are to be exactly the requirements of its
inputs, and each version is to be one that they allow.
"""

import itertools
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = re.compile(r"^([a-z0-9.-]+)==(\S+?)(?: ; .*?)? \\\n((?: {4}.*\n?)*)", re.MULTILINE)


class Lock(NamedTuple):
    """One lock file, and the inputs of which `make lock` makes it."""

    file: str
    inputs: tuple[str, ...]
    constraints: tuple[str, ...]
    """Other lock files: what both have is of one version."""
    extras: tuple[str, ...]
    left_out: tuple[str, ...]
    """Packages that are in the image already: they are resolved and not written."""


def locks() -> Iterator[Lock]:
    """Read the one list of lock files: the commands of the target `lock`."""
    printed = subprocess.run(
        ["make", "--no-print-directory", "-n", "lock"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in printed.replace("\\\n", "").splitlines():
        words = shlex.split(command)
        options = list(itertools.pairwise(words))
        (file,) = (value for name, value in options if name == "-o")
        inputs = tuple(word for word in words if word.endswith((".toml", ".in", "/requirements.txt")))
        constraints = tuple(value for name, value in options if name == "-c")
        extras = tuple(value for name, value in options if name == "--extra")
        every = tuple(PROJECT["optional-dependencies"]) if "--all-extras" in words else ()
        left_out = tuple(value for name, value in options if name == "--no-emit-package")
        yield Lock(file, inputs, constraints, extras + every, left_out)


LOCKS = list(locks())


def wanted(lock: Lock) -> dict[str, list[Requirement]]:
    """Return the requirements of each input, by what the lock file calls it."""
    lines: dict[str, list[str]] = {}
    for name in lock.inputs:
        if name == "pyproject.toml":
            extras = (PROJECT["optional-dependencies"][extra] for extra in lock.extras)
            lines[f"{PROJECT['name']} (pyproject.toml)"] = [line for extra in extras for line in extra]
        else:
            text = (ROOT / name).read_text(encoding="utf-8").splitlines()
            lines[f"-r {name}"] = [line for line in text if line and not line.startswith("#")]
    return {name: [Requirement(line) for line in each] for name, each in lines.items()}


def locked(text: str) -> dict[str, tuple[str, set[str]]]:
    """Return the version of each package, and who wanted it."""
    found = {}
    for name, version, rest in PACKAGE.findall(text):
        comments = [line.strip().removeprefix("#").strip() for line in rest.splitlines() if line.strip()[0] == "#"]
        found[name] = (version, {each.removeprefix("via").strip() for each in comments} - {""})
    return found


def faults(lock: Lock, packages: dict[str, tuple[str, set[str]]]) -> list[str]:
    """Say what the lock file lacks, has for nobody, or has in a version that is not allowed."""
    said = []
    for who, requirements in wanted(lock).items():
        names = {canonicalize_name(each.name) for each in requirements} - set(lock.left_out)
        told = {name for name, (_, by) in packages.items() if who in by}
        said += [f"{name} is not in it, and {who} wants it" for name in sorted(names - told)]
        said += [f"{name} is in it for {who}, which does not want it" for name in sorted(told - names)]
        said += [
            f"{each.name} is {version}, and {who} wants {each.specifier}"
            for each in requirements
            if (version := packages.get(canonicalize_name(each.name), ("", set()))[0])
            and not each.specifier.contains(version, prereleases=True)
        ]
    for name in lock.constraints:
        others = locked((ROOT / name).read_text(encoding="utf-8"))
        both = sorted(others.keys() & packages.keys())
        said += [f"{each} is of another version in {name}" for each in both if others[each][0] != packages[each][0]]
    return said


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.file)
def test_a_lock_file_is_what_its_inputs_ask_for(lock: Lock) -> None:
    found = faults(lock, locked((ROOT / lock.file).read_text(encoding="utf-8")))
    assert found == [], f"{lock.file}: run `make lock`\n" + "\n".join(found)


def test_every_lock_file_is_made_by_make_lock() -> None:
    assert {lock.file for lock in LOCKS} == {f"requirements/{path.name}" for path in (ROOT / "requirements").iterdir()}
    inputs = {name for lock in LOCKS for name in lock.inputs}
    given = (*ROOT.glob("*/*/*.in"), *ROOT.glob("manifests/samples/*/*/requirements.txt"))
    assert inputs == {"pyproject.toml", *(str(path.relative_to(ROOT)) for path in given)}


def test_every_package_that_is_locked_has_hashes() -> None:
    """pip takes a package without one for an error, but only once somebody installs."""
    for lock in LOCKS:
        text = (ROOT / lock.file).read_text(encoding="utf-8")
        pinned = re.findall(r"^(\S+)==", text, re.MULTILINE)
        assert pinned == [name for name, _, _ in PACKAGE.findall(text)], lock.file
        assert all("--hash=sha256:" in rest for _, _, rest in PACKAGE.findall(text)), lock.file


def test_a_lock_file_that_is_older_than_its_inputs_is_told() -> None:
    (lock,) = (each for each in LOCKS if each.file == "requirements/operator.txt")
    packages = locked((ROOT / lock.file).read_text(encoding="utf-8"))
    project = "triton-operator (pyproject.toml)"
    del packages["kopf"]
    packages["kubernetes"] = ("36.0", {project})
    packages["removed"] = ("1.0", {project})
    assert faults(lock, packages) == [
        f"kopf is not in it, and {project} wants it",
        f"removed is in it for {project}, which does not want it",
        f"kubernetes is 36.0, and {project} wants >=37",
    ]
