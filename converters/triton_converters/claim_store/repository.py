"""The model repository on the claim: converted files, and the immutable revisions that serve them."""

from dataclasses import dataclass, replace
from pathlib import Path

from triton_converters.claim_store import inspection, python_step
from triton_converters.claim_store.digest import SourceFile, digest_of, sha256_of
from triton_converters.claim_store.dump import Arrays, Batch
from triton_converters.claim_store.publish import link_or_copy, publish_directory, temporary_directory, write_file
from triton_converters.claim_store.replay import RESULT_FILE, has_result, read_result, write_result
from triton_converters.claim_store.revision import content_digest
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.formats import TRITON_PYTHON
from triton_converters.contract.results import ConvertResult, Signature
from triton_converters.model_config.data_types import wire
from triton_converters.model_config.model import Execution, render, warmup_file

MODELS = "models"
"""Folders of a revision, as in layout.model_repository."""
STEP_THREADS = "intra_op_thread_count"
"""The parameter that says how many threads a Python step's libraries compute with; without it there is no bound."""


@dataclass(frozen=True)
class Conversion(Document):
    """``candidates/<conversion key>/result.json``: describes the converted file in the same directory."""

    conversion_key: str
    files: tuple[str, ...]
    """Relative paths, the model's own file first; large ONNX models and SavedModels have several files."""
    result: ConvertResult


def find_conversion(directory: Path, conversion_key: str) -> Conversion | None:
    """Return the conversion of that key if it is complete, else None."""
    try:
        conversion = Conversion.from_json((directory / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, DocumentError):
        return None
    complete = conversion.files and all((directory / file).is_file() for file in conversion.files)
    return conversion if complete and conversion.conversion_key == conversion_key else None


def find_intact(directory: Path, conversion_key: str) -> Conversion | None:
    """Return the conversion of that key if it is complete and its files are those that were published, else None."""
    conversion = find_conversion(directory, conversion_key)
    if conversion is None:
        return None
    names = [name for name in conversion.files if name != inspection.FILE]
    sums = {name: sha256_of(SourceFile(name, directory / name)) for name in names}
    return conversion if digest_of(sums, len(sums) == 1) == conversion.result.file_sha256 else None


def write_conversion(directory: Path, conversion: Conversion) -> None:
    """Write the conversion's document next to its files."""
    write_file(directory / RESULT_FILE, conversion.to_json().encode())


def publish_revision(
    request: ConvertRequest, signature: Signature, conversion: Conversion, example: Batch
) -> ConvertResult:
    """Publish ``revisions/<key>/``; returns the result that was published first.

    ``example``: a real batch, whose first sample warms the model up. Raises OSError if the claim is full.
    """
    with temporary_directory(layout.revision_directory(request.key)) as directory:
        write_model_directory(directory / MODELS, request, signature, conversion, example)
        return publish(directory, request.key, conversion.result)


def write_model_directory(
    models: Path, request: ConvertRequest, signature: Signature, conversion: Conversion, example: Batch
) -> None:
    """Write ``<models>/<model>/``: config.pbtxt, the version with the converted files, and warm-up samples."""
    candidate = layout.candidate_directory(request.conversion_key)
    model = models / request.model_name
    version = model / layout.VERSION
    version.mkdir(parents=True)
    for file in conversion.files:
        (version / file).parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(candidate / file, version / file)
    config = request.config
    if request.format == TRITON_PYTHON:
        code = request.model.entrypoint
        threads = int(config.parameters.get(STEP_THREADS, "0"))
        declared = request.model.declared
        otherwise = _served_otherwise(declared, signature)
        python_step.write_settings(version, code.path, threads, otherwise, completes=declared is None)
        config = replace(config, parameters={**code.arguments, **config.parameters})
    # TensorRT inside ONNX Runtime builds its engines in the first requests: without a warm-up a pod is ready before.
    warms_up = request.config.warmup or request.accelerator == "trt"
    # A server loads its models in any order, so those that a step asks may not be there yet.
    warms_up = warms_up and not request.model.calls
    sample = _first_sample(example, signature) if warms_up else {}
    shapes = {name: array.shape for name, array in sample.items()}
    execution = Execution(request.format, request.accelerator, request.tensorrt.workspace_bytes, request.engine_cache)
    text = render(signature, config, execution, shapes)
    (model / "config.pbtxt").write_text(text, encoding="utf-8")
    _write_warmup(model / "warmup", sample)


def _served_otherwise(declared: Signature | None, served: Signature) -> dict[str, tuple[int, ...]]:
    """Return the declared dimensions of the outputs that are served with others."""
    dims = {each.name: each.dims for each in served.outputs}
    return {each.name: each.dims for each in (declared.outputs if declared else ()) if dims.get(each.name) != each.dims}


def publish(directory: Path, key: str, result: ConvertResult) -> ConvertResult:
    """Publish the directory as ``revisions/<key>/``; returns the result that was published first."""
    target = layout.revision_directory(key)
    result = replace(result, content=content_digest(directory))
    write_result(directory, "convert", key, result)
    if not publish_directory(directory, target, lambda path: has_result(path, "convert", key)):
        return read_result(target, "convert", key, ConvertResult)
    return result


def _first_sample(example: Batch, signature: Signature) -> Arrays:
    """Return one sample of every input, without the batch dimension."""
    return {
        tensor.name: example.inputs[tensor.name][0] if signature.max_batch_size else example.inputs[tensor.name]
        for tensor in signature.inputs
    }


def _write_warmup(directory: Path, sample: Arrays) -> None:
    if sample:
        directory.mkdir()
    for name, array in sample.items():
        (directory / warmup_file(name)).write_bytes(wire(array))
