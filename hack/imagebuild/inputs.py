"""What an image is made of: its Dockerfile and the files that Dockerfile copies, and nothing else.

The build context is staged from exactly these files, so a file that is not part of the hash cannot get into
an image.
"""

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "triton-operator.local"
DIGEST_LENGTH = 12
DEBIAN = "debian:trixie-slim"
"""The base image that this machine may make itself."""
BASE = re.compile(r"^ARG BASE_IMAGE=(\S+)$", re.MULTILINE)
IGNORED_FOLDERS = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
IGNORED_SUFFIXES = frozenset({".pyc", ".pyo"})


@dataclass(frozen=True)
class Image:
    """One image: `name` is its folder below `images/`; `files` are its inputs, relative to the root."""

    name: str
    base: str
    """Reference of its base image."""
    files: tuple[Path, ...]
    digest: str

    @property
    def reference(self) -> str:
        """The image's name with its tag, `triton-operator.local/NAME:HASH`."""
        return f"{REPOSITORY}/{self.name}:{self.digest}"


def names(root: Path = ROOT) -> list[str]:
    """List by name the images that are always built: the folders of `images/` whose Dockerfile starts from Debian's."""
    found = {path.parent.name: path.read_text(encoding="utf-8") for path in (root / "images").glob("*/Dockerfile")}
    return sorted(name for name, text in found.items() if foreign_base(text) is None)


def foreign_base(text: str) -> str | None:
    """Return the base image that a Dockerfile names, if it is another one than Debian's."""
    named = BASE.search(text)
    return named.group(1) if named and named.group(1) != DEBIAN else None


def dockerfile(name: str) -> Path:
    """Path of the Dockerfile of an image, relative to the root."""
    return Path("images", name, "Dockerfile")


def copied(text: str) -> list[str]:
    """Name the context paths that a Dockerfile copies (`COPY` without `--from`, shell form)."""
    paths = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0].upper() not in ("COPY", "ADD"):
            continue
        flags = [word for word in words[1:] if word.startswith("--")]
        if not any(flag.startswith("--from=") for flag in flags):
            paths += [word for word in words[1:-1] if not word.startswith("--")]
    return paths


def files_below(root: Path, path: str) -> Iterator[Path]:
    """Yield the file `path`, or every file below the folder `path`, relative to `root`.

    Raises FileNotFoundError if there is none.
    """
    top = root / path
    if top.is_file():
        yield top.relative_to(root)
        return
    found = False
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(set(folders) - IGNORED_FOLDERS)
        for file in sorted(files):
            if Path(file).suffix not in IGNORED_SUFFIXES:
                found = True
                yield Path(folder, file).relative_to(root)
    if not found:
        raise FileNotFoundError(f"{top}: copied by a Dockerfile, but no such file or folder in the repository")


def read(name: str, base: str, root: Path = ROOT) -> Image:
    """Read the inputs of an image; `base` is the reference of Debian's base image.

    Raises FileNotFoundError if the Dockerfile copies something that is not there.
    """
    recipe = dockerfile(name)
    if not (root / recipe).is_file():
        raise FileNotFoundError(
            f"no image {name!r}: {root / recipe} does not exist; there are {', '.join(names(root))}"
        )
    text = (root / recipe).read_text(encoding="utf-8")
    files = dict.fromkeys([recipe])
    for path in copied(text):
        files.update(dict.fromkeys(files_below(root, path)))
    base = foreign_base(text) or base
    return Image(name, base, tuple(files), digest(root, base, list(files)))


def digest(root: Path, base: str, files: list[Path]) -> str:
    """Hash the base's reference and the names, modes and contents of files; 12 hexadecimal digits."""
    sha = hashlib.sha256(base.encode())
    for file in files:
        content = (root / file).read_bytes()
        sha.update(f"\0{file}\0{mode(root / file):o}\0{len(content)}\0".encode())
        sha.update(content)
    return sha.hexdigest()[:DIGEST_LENGTH]


def mode(file: Path) -> int:
    """Permissions that a file gets in the context: 0755 if its owner may execute it, else 0644."""
    return 0o755 if file.stat().st_mode & 0o100 else 0o644


def stage(image: Image, context: Path, root: Path = ROOT) -> None:
    """Copy the inputs of an image into the empty folder `context`, with fixed modes and times.

    Builders key their layer caches on modes, some on times too.
    """
    for file in image.files:
        target = context / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, target)
        target.chmod(mode(root / file))
    for path in (context, *context.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (0, 0))
