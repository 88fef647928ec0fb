"""result.json: the outcome of a stage, in the directory of its key; a stage that has one does not run again."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from triton_converters.claim_store.publish import publish_directory, temporary_directory, write_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import CodeRequest, ModelCode
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import MetricsRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ProfileResult, ReferenceResult

RESULT_FILE = "result.json"
D = TypeVar("D", bound=Document)


def find_result(directory: Path, stage: str, key: str) -> Document | None:
    """Return the valid result of that stage and key in the directory, or None."""
    try:
        outcome = Outcome.from_json((directory / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, DocumentError):
        return None
    return outcome.result if (outcome.stage, outcome.key) == (stage, key) else None


def published_types(revision: str) -> tuple[str, ...]:
    """Return the floating point types that the revision's files were published with; none: nothing says them."""
    converted = find_result(layout.revision_directory(revision), "convert", revision)
    return converted.data_types if isinstance(converted, ConvertResult) else ()


def has_result(directory: Path, stage: str, key: str) -> bool:
    """Whether the directory holds the valid result of that stage and key."""
    return find_result(directory, stage, key) is not None


def read_result(directory: Path, stage: str, key: str, kind: type[D]) -> D:
    """Return the result of an earlier stage; raises StageError(InputMissing), which a new run of that stage fixes."""
    result = find_result(directory, stage, key)
    if not isinstance(result, kind):
        raise StageError(
            Reason.INPUT_MISSING, f"{directory} on the repository claim holds no valid {RESULT_FILE}", final=False
        )
    return result


def read_reference(key: str) -> ReferenceResult:
    """Return the result of a reference; raises StageError(InputMissing) if it is not on the claim."""
    return read_result(layout.reference_directory(key), "reference", key, ReferenceResult)


def check_metrics_inputs(request: MetricsRequest) -> None:
    """Raise StageError(InputMissing) if what metrics are computed of is not on the claim.

    That is the user's files, the reference, and the served outputs that the candidates' profiles kept.
    """
    check_inputs(request)
    read_reference(request.reference)
    for each in request.candidates:
        directory = layout.measurement_directory(each.profile)
        read_result(directory, "profile", each.profile, ProfileResult)
        if not layout.kept_outputs(each.profile).is_dir():
            message = f"{directory} on the repository claim holds no served outputs"
            raise StageError(Reason.INPUT_MISSING, message, final=False)


def published_source(digest: str) -> Path:
    """Return the source's directory; raises StageError(InputMissing) if it is no longer on the claim."""
    directory = layout.source_directory(digest)
    # For a missing directory, the kubelet mounts an empty one, and leaves it there.
    if not (directory.is_dir() and any(directory.iterdir())):
        raise StageError(Reason.INPUT_MISSING, f"{directory} is no longer on the repository claim", final=False)
    return directory


def check_inputs(request: CodeRequest) -> None:
    """Raise StageError(InputMissing) if the source, weights, data or packages are no longer on the claim."""
    for digest in filter(None, (request.source, request.weights, request.data)):
        published_source(digest)
    if request.packages:
        published_packages(request.packages)


def check_step_folders(source: str, models: Iterable[ModelCode]) -> None:
    """Raise StageError(EntrypointInvalid) if a step's folder is mounted and its file is not in the published source.

    The kubelet would make an empty folder there, in what never changes. ``models``: an ensemble counts as its models.
    """
    root = layout.source_directory(source)
    for each in (part for model in models for part in model.parts if part.mount_path):
        if not (root / each.entrypoint.path).is_file():
            raise StageError(Reason.ENTRYPOINT_INVALID, f"the source has no file {each.entrypoint.path!r}")


def published_packages(key: str) -> Path:
    """Return the directory of installed packages; raises StageError(InputMissing) if it is no longer on the claim."""
    directory = layout.installed_packages(key)
    if not directory.is_dir():
        raise StageError(Reason.INPUT_MISSING, f"{directory} is no longer on the repository claim", final=False)
    return directory


def write_result(directory: Path, stage: str, key: str, result: Document) -> None:
    """Write result.json.

    Raises MessageTooLongError if it does not fit into a termination message; StageError(Crashed) if it has no reader.
    """
    try:
        message = Outcome(stage, key, result).to_json()
        Outcome.from_json(message)
    except DocumentError as error:
        raise StageError(Reason.CRASHED, f"the result is not one that can be read again: {error}") from error
    write_file(directory / RESULT_FILE, message.encode())


def publish_result(target: Path, stage: str, key: str, kind: type[D], fill: Callable[[Path], D]) -> D:
    """Publish ``target`` with what ``fill`` writes and its result; returns the result that was published first."""
    with temporary_directory(target) as directory:
        result = fill(directory)
        write_result(directory, stage, key, result)
        if not publish_directory(directory, target, lambda path: has_result(path, stage, key)):
            return read_result(target, stage, key, kind)
    return result
