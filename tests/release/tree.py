"""Clones of this tree to release from: a release takes committed trees only, and each version is a commit."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hack.imagebuild import inputs

ROOT = Path(__file__).resolve().parents[2]
NAME = "triton-operator"
DOWNLOADS = "https://models.example/triton-operator"
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.com")
SMALL = """\
ARG BASE_IMAGE=debian:trixie-slim
FROM ${{BASE_IMAGE}}
COPY requirements/image-{name}.txt /tmp/
"""
RELEASE_SECONDS = 1800


@dataclass(frozen=True)
class Tree:
    """A clone of the commit that is checked out here."""

    folder: Path

    @classmethod
    def cloned(cls, folder: Path) -> "Tree":
        """A new clone in `folder`."""
        subprocess.run(["git", "clone", "--quiet", "--no-tags", str(ROOT), str(folder)], check=True)
        return cls(folder)

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a file."""
        text = (self.folder / path).read_text()
        assert old in text
        (self.folder / path).write_text(text.replace(old, new))

    def shrink(self) -> None:
        """Make the images of PyTorch and TensorFlow the base image and a lock file: only the operator's stays whole."""
        for name in set(inputs.names(self.folder)) - {"operator"}:
            (self.folder / inputs.dockerfile(name)).write_text(SMALL.format(name=name))

    def number(self, before: str, version: str) -> None:
        """Set the version of the tree."""
        self.replace("pyproject.toml", f'version = "{before}"', f'version = "{version}"')
        self.replace("charts/triton-operator/Chart.yaml", f"ersion: {before}", f"ersion: {version}")

    def commit(self) -> None:
        """Commit everything, without the fragments, which a release has moved into CHANGELOG.md."""
        for fragment in (self.folder / "changelog.d").glob("*.*.md"):
            fragment.unlink()
        for argv in (("add", "--all"), (*IDENTITY, "commit", "--quiet", "--allow-empty", "--message", "A release")):
            subprocess.run(["git", *argv], cwd=self.folder, check=True)

    def release(self, registry: str, version: str, key: Path) -> "subprocess.CompletedProcess[str]":
        """What `make release` runs, and what it printed."""
        rooms = [str(self.folder / room) for room in ("operator", "converters", "plugin", "")]
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        elsewhere = [path for path in inherited if Path(path).is_absolute() and not Path(path).is_relative_to(ROOT)]
        argv = [sys.executable, "-m", "hack.release", "--registry", registry, "--version", version, "--key", str(key)]
        argv += ["--downloads", DOWNLOADS]
        environment = {**os.environ, "COSIGN_PASSWORD": "", "PYTHONPATH": os.pathsep.join([*rooms, *elsewhere])}
        return subprocess.run(
            argv, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=RELEASE_SECONDS, check=False
        )

    def output(self, version: str) -> Path:
        """The folder of a release's files."""
        return self.folder / "dist" / version
