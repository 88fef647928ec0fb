"""inspection.json: what a format's own runtime reported about a file that nothing else can read.

The converters of engines and SavedModels write it into the directory of the file, and it is published with the file. It
names the file's digest, so a Job without such a runtime can still tell that this very file was inspected.
"""

from dataclasses import dataclass
from pathlib import Path

from triton_converters.claim_store.digest import SourceFile, digest_of, sha256_of
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

FILE = "inspection.json"


@dataclass(frozen=True)
class Inspection(Document):
    """The inspection of one converted model."""

    file_sha256: str
    """The ``digest`` of the directory."""
    data_types: tuple[str, ...]
    """Triton's names of its floating point types, the type of most weights or layers first."""
    tensorrt_version: str
    """Version of the TensorRT that made the model; empty if none did."""
    gpu_product: str
    """GPU product that an engine was built for; empty for what runs anywhere."""
    tensors: tuple[str, ...]
    """Inputs and outputs as the runtime names them, in words: name, type, dimensions, ranges."""


def write(
    directory: Path,
    data_types: tuple[str, ...],
    tensors: tuple[str, ...] = (),
    tensorrt_version: str = "",
    gpu_product: str = "",
) -> None:
    """Write the inspection of the files that lie in ``directory``."""
    made = Inspection(digest(directory), data_types, tensorrt_version, gpu_product, tensors)
    (directory / FILE).write_text(made.to_json(), encoding="utf-8")


def find(directory: Path) -> Inspection | None:
    """Return the inspection in the files' directory, or None if the format needs none."""
    path = directory / FILE
    return Inspection.from_json(path.read_text(encoding="utf-8")) if path.exists() else None


def read(directory: Path) -> Inspection:
    """Return the inspection of the files as they are; raises StageError(ModelLoadFailed) if it is of other files."""
    try:
        found = find(directory)
    except (OSError, DocumentError) as error:
        raise StageError(Reason.MODEL_LOAD_FAILED, f"{directory / FILE} cannot be read: {error}") from error
    if found is None or found.file_sha256 != digest(directory):
        message = f"the model's files in {directory} are not those that were inspected after the conversion"
        raise StageError(Reason.MODEL_LOAD_FAILED, message)
    return found


def digest(directory: Path) -> str:
    """Return the digest of the model's files, computed as for a source; it excludes the inspection."""
    sums = {name: sha256_of(SourceFile(name, directory / name)) for name in model_files(directory)}
    return digest_of(sums, len(sums) == 1)


def model_files(directory: Path) -> list[str]:
    """Return the relative paths of all files below the directory except the inspection, sorted."""
    paths = (str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    return sorted(name for name in paths if name != FILE)
