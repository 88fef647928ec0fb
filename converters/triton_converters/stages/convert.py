"""Stage ``convert``: make one candidate's file, unless its key has one already, and the revision that serves it."""

import re
import time
import traceback
import warnings
from pathlib import Path

from triton_converters.claim_store import inspection
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.ensemble_repository import Part, publish_ensemble
from triton_converters.claim_store.publish import publish_directory, temporary_directory
from triton_converters.claim_store.replay import published_source, read_result
from triton_converters.claim_store.repository import Conversion, find_conversion, publish_revision, write_conversion
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS, THROUGH
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import ConvertRequest
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature
from triton_converters.convert.comparison import max_absolute_error
from triton_converters.convert.example import example_inputs
from triton_converters.convert.task import ConversionWarning, Task, convert
from triton_converters.gates.precision import check_precision
from triton_converters.load import framework
from triton_converters.load.framework import Framework
from triton_converters.user.user_code import location

WARNINGS = 4
"""Number of warnings kept, with WARNING_CHARACTERS each: all must fit into the termination message."""
WARNING_CHARACTERS = 240
MEANING_CHARACTERS = 500
"""Longest text kept of an exporter's error, which may quote the whole graph."""


def run(request: ConvertRequest) -> ConvertResult:
    """Publish ``revisions/<key>/``, and ``candidates/<conversion key>/`` if it is missing.

    Raises StageError: ResultMissing (no reference), what the model's loader raises, ConversionFailed,
    ConversionUnsupported, NamingUnsupported, TensorRtUnavailable, PrecisionMismatch; OSError if the claim is full.
    """
    if request.members:
        return publish_ensemble(request, tuple(_part(member) for member in request.members))
    part = _part(request)
    return publish_revision(part.request, part.signature, part.conversion, part.example)


def _part(request: ConvertRequest) -> Part:
    """Return one model, which is converted here unless another Job did it before."""
    reference = layout.reference_directory(request.reference)
    signature = read_result(reference, "reference", request.reference, ReferenceResult).signature
    candidate = layout.candidate_directory(request.conversion_key)
    conversion = find_conversion(candidate, request.conversion_key)
    if conversion is None:
        try:
            conversion = _convert(request, signature, candidate)
        except StageError as error:
            # Without an ensemble the candidate's name says enough.
            if request.candidate:
                raise
            raise StageError(error.reason, f"model {request.model_name}: {error.message}", final=error.final) from error
    if request.engine_cache:
        Path(request.engine_cache).mkdir(parents=True, exist_ok=True)
    return Part(request, signature, conversion, next(read_batches(reference)))


def _convert(request: ConvertRequest, signature: Signature, target: Path) -> Conversion:
    """Convert, check the file's data types, and publish it; returns the conversion that was published first."""
    started = time.monotonic()
    with temporary_directory(target) as directory:
        collected = write_model(request, signature, directory)
        file = FORMATS[request.format].file
        data_types = check_precision(directory / file, request.format, request.precision)
        inspected = inspection.find(directory)
        names = inspection.model_files(directory)
        files = (
            *sorted(names, key=lambda name: (Path(name).parts[0] != file, name)),
            *([inspection.FILE] if inspected else []),
        )
        error, doubts = max_absolute_error(request, signature, directory)
        result = ConvertResult(
            file_sha256=inspection.digest(directory),
            file_bytes=sum((directory / name).stat().st_size for name in files),
            data_types=data_types,
            seconds=round(time.monotonic() - started, 3),
            warnings=tuple(dict.fromkeys(line[:WARNING_CHARACTERS] for line in (*collected, *doubts)))[:WARNINGS],
            tensorrt_version=inspected.tensorrt_version if inspected else "",
            max_absolute_error=error,
        )
        conversion = Conversion(request.conversion_key, files, result)
        write_conversion(directory, conversion)
        if publish_directory(directory, target, lambda path: find_conversion(path, request.conversion_key) is not None):
            return conversion
    return find_conversion(target, request.conversion_key) or conversion


def write_model(request: ConvertRequest, signature: Signature, directory: Path) -> list[str]:
    """Load the model and write it in the requested format into ``directory``; returns warnings for the user."""
    model = framework.load(published_source(request.source), request.model, request.format)
    batches = read_batches(layout.reference_directory(request.reference))
    dynamo = request.format in ("onnx", *THROUGH) and request.onnx_exporter == "Dynamo"
    example = example_inputs(batches, signature, at_least_two=dynamo)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            convert(Task(request, model, signature, example), directory)
        except (StageError, OSError):
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"{request.format} {request.precision}: {_meaning(error)} (at {_place(error, model)})"
            raise StageError(Reason.CONVERSION_FAILED, message) from error
    return [_line(warning) for warning in caught if _concerns_user(warning, model.source)]


def _concerns_user(warning: warnings.WarningMessage, source: Path) -> bool:
    """Whether a warning is about this model: from the tracer (what was frozen), a converter or user code."""
    telling = issubclass(warning.category, ConversionWarning) or warning.category.__name__ == "TracerWarning"
    return telling or Path(warning.filename).is_relative_to(source)


def _line(warning: warnings.WarningMessage) -> str:
    text = " ".join(str(warning.message).split())
    own = issubclass(warning.category, ConversionWarning)
    return text if own else f"{Path(warning.filename).name}:{warning.lineno}: {text}"


def _meaning(error: BaseException) -> str:
    """Return the text of the root error: exporters wrap it in advice, and TorchScript puts it last."""
    root = _root(error)
    lines = [line.strip() for line in str(root).splitlines() if line.strip(" ^~-=")]
    causes = [line for line in lines[1:] if re.match(r"\w+(Error|Exception): ", line)]
    text = causes[-1] if causes else " ".join([type(root).__name__ + ":", *lines])
    return f"{text[:MEANING_CHARACTERS]} ..." if len(text) > MEANING_CHARACTERS else text


def _place(error: BaseException, model: Framework) -> str:
    """Return file and line of the user's code: where the exporter's text points, or the innermost frame."""
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', str(_root(error))):
        if Path(file).is_relative_to(model.source):
            return f"{Path(file).relative_to(model.source)}:{line}"
    return location(error, model.source, model.path)


def _root(error: BaseException) -> BaseException:
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error
