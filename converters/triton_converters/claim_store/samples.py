"""The files of a reference that hold its samples and the framework's answers to them."""

from pathlib import Path

from triton_converters.claim_store.digest import SourceFile, digest_of, sha256_of
from triton_converters.claim_store.dump import SIZES


def files(directory: Path) -> list[SourceFile]:
    """Return the batches below a reference's directory, then the requests of other sizes; perhaps none."""
    paths = [*sorted((directory / "batches").glob("*.npz")), *sorted((directory / SIZES / "batches").glob("*.npz"))]
    return [SourceFile(path.relative_to(directory).as_posix(), path) for path in paths]


def digest(directory: Path) -> str:
    """Return the digest of these files, as a source has one; raises StageError(SourceInvalid) for an unreadable one."""
    return digest_of({file.name: sha256_of(file) for file in files(directory)}, single=False)
