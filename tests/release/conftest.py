"""A registry, a key, and a release of small images."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.devcluster.binaries import program
from tests.release.registry import Registry, running
from tests.release.tree import Tree

VERSION = "0.1.0"


@dataclass(frozen=True)
class Released:
    """A release: the tree it was made from, its folder of files, and the lines that were printed."""

    tree: Tree
    files: Path
    lines: list[str]

    @property
    def digests(self) -> dict[str, tuple[str, str]]:
        """(repository, digest) by the last part of the repository."""
        lines = [line.split("@") for line in (self.files / "digests.txt").read_text().splitlines()]
        return {name.rpartition("/")[2].partition(":")[0]: (name.rpartition(":")[0], digest) for name, digest in lines}


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """An empty registry."""
    with running(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private key without a password; the public one lies next to it."""
    return generate_key(tmp_path_factory.mktemp("key"))


def generate_key(folder: Path) -> Path:
    argv = [str(program("cosign")), "generate-key-pair"]
    subprocess.run(argv, cwd=folder, env={"COSIGN_PASSWORD": ""}, capture_output=True, check=True)
    return folder / "cosign.key"


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory, registry: Registry, key: Path) -> Released:
    """A release whose images, but for the operator's, are small."""
    tree = Tree.cloned(tmp_path_factory.mktemp("small") / "tree")
    tree.shrink()
    tree.commit()
    done = tree.release(f"{registry.host}/small", VERSION, key)
    assert done.returncode == 0, done.stderr
    return Released(tree, tree.output(VERSION), done.stdout.splitlines())
