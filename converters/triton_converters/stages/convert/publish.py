"""Take over what was converted, check it, and publish it with the revision that serves it."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from triton_converters.claim_store import inspection, python_step
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.ensemble_repository import Built, publish_ensemble
from triton_converters.claim_store.publish import publish_directory, temporary_directory, write_file
from triton_converters.claim_store.replay import published_packages
from triton_converters.claim_store.repository import Conversion, find_intact, publish_revision, write_conversion
from triton_converters.claim_store.root import own_directory
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.formats import FORMATS, TRITON_PYTHON
from triton_converters.contract.quantization import METHODS, Quantized
from triton_converters.contract.results import ConvertResult
from triton_converters.gates.precision import HALVES, READABLE, check_precision
from triton_converters.gates.signature import as_served
from triton_converters.incoming import documents, files, model_files
from triton_converters.incoming.documents import Converted, amount
from triton_converters.incoming.files import unfit
from triton_converters.stages.convert.parts import (
    TIMING_CACHE,
    document,
    gpu,
    named,
    parts,
    signature,
    timing_cache,
)


def run(request: ConvertRequest, incoming: Path) -> ConvertResult:
    """Publish ``revisions/<key>/``, and ``candidates/<conversion key>/`` if it is missing.

    Raises StageError: InputMissing (no reference), that with which the user's code ended, PrecisionMismatch, and what
    ``model_files.take`` raises; OSError if the claim is full.
    """
    made = tuple(_part(part, incoming) for part in parts(request))
    if request.members:
        return publish_ensemble(request, made, signature(request))
    return publish_revision(made[0].request, made[0].signature, made[0].conversion, made[0].example)


def _part(request: ConvertRequest, incoming: Path) -> Built:
    """Return one model; its conversion may have been published by another Job before."""
    form = signature(request)
    candidate = layout.candidate_directory(request.conversion_key)
    conversion = find_intact(candidate, request.conversion_key)
    if conversion is None:
        documents.check_end(incoming, "convert")
        with named(request):
            conversion = _accept(request, incoming, candidate)
    file = candidate / FORMATS[request.format].file
    try:
        served = as_served(form, file, request.format)
    except ValueError as error:
        raise unfit(file, error) from error
    return Built(request, served, conversion, next(read_batches(layout.reference_directory(request.reference))))


def _accept(request: ConvertRequest, incoming: Path, target: Path) -> Conversion:
    """Copy, check and publish the files; returns the conversion that was published first."""
    told = documents.read(incoming, document(request.conversion_key), Converted)
    root = incoming / request.conversion_key
    file = FORMATS[request.format].file
    with temporary_directory(target) as directory:
        if request.format == TRITON_PYTHON:
            packages = published_packages(request.step_packages) if request.step_packages else None
            source = layout.source_directory(request.source)
            python_step.write(source, request.model.entrypoint.path, directory, packages)
        else:
            model_files.take(root, request.format, directory)
        if request.format not in READABLE:
            model_files.take_inspection(root, request.gpu_product, directory)
        kept = HALVES if request.keeps_types else ()
        data_types = check_precision(directory / file, request.format, request.precision, kept)
        inspected = inspection.find(directory)
        listed = (
            *sorted(inspection.model_files(directory), key=lambda name: (Path(name).parts[0] != file, name)),
            *([inspection.FILE] if inspected else []),
        )
        result = ConvertResult(
            file_sha256=inspection.digest(directory),
            file_bytes=sum((directory / name).stat().st_size for name in listed),
            data_types=data_types,
            seconds=amount(told.seconds),
            warnings=_warnings(told, data_types[0] if data_types and data_types[0] in kept else ""),
            tensorrt_version=inspected.tensorrt_version if inspected else "",
            max_absolute_error=None if told.max_absolute_error is None else amount(told.max_absolute_error),
            rehearsed=told.rehearsed,
            gpu=documents.plain(told.gpu, documents.GPU_CHARACTERS),
            quantized=_quantized(request, told.quantized, incoming),
        )
        _keep_timing_cache(request, result.tensorrt_version, incoming)
        conversion = Conversion(request.conversion_key, listed, result)
        write_conversion(directory, conversion)
        if publish_directory(directory, target, lambda path: find_intact(path, request.conversion_key) is not None):
            return conversion
    return find_intact(target, request.conversion_key) or conversion


def _quantized(request: ConvertRequest, told: Quantized | None, incoming: Path) -> Quantized | None:
    """Return the figures of an INT8 graph. Raises StageError(Crashed) for what no graph is like."""
    if (told is None) != (request.quantization is None):
        raise unfit(incoming / document(request.conversion_key), "it tells of INT8 that was not asked for, or lacks it")
    if told is None:
        return None
    counts = 0 <= told.int8_operators <= told.operators and told.calibration_samples >= 0
    if told.method not in METHODS or not counts:
        raise unfit(incoming / document(request.conversion_key), "it tells of an INT8 graph that cannot be")
    ratio = None if told.signal_to_noise is None else amount(told.signal_to_noise)
    return replace(told, signal_to_noise=ratio, speedup=amount(told.speedup))


def _warnings(told: Converted, kept: str) -> tuple[str, ...]:
    """Return the warnings to keep; ``kept``: the type of most weights if it is not the precision's, else empty."""
    own = [f"most weights of the file are {kept}, and are served as they are"] if kept else []
    return documents.first_warnings((*own, *told.warnings))


def _keep_timing_cache(request: ConvertRequest, version: str, incoming: Path) -> None:
    """Store what TensorRT measured for this object, if it built an engine, in place of what it measured before.

    The version is user code's to tell, so one for each would fill the claim. What grew beyond the limit is left out:
    without it, the next build only takes longer.
    """
    name = timing_cache(request.conversion_key)
    if not (version and os.environ.get(layout.OBJECT) and files.exists(incoming, name)):
        return
    with files.open_file(incoming, name) as file:
        content = file.read(model_files.TIMING_CACHE_BYTES + 1)
    if len(content) > model_files.TIMING_CACHE_BYTES:
        return
    own = own_directory()
    kept = own / gpu(request) / version
    write_file(kept / TIMING_CACHE, content)
    for other in set(own.glob("[!.]*/*")) - {kept}:
        shutil.rmtree(other, ignore_errors=True)
