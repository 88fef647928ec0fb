"""Stage ``convert``: one candidate's file, unless its key has one already, and the revision that serves it."""

import importlib
import re
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton_converters import claim
from triton_converters.dump import read_batches
from triton_converters.failure import StageError
from triton_converters.formats import FORMATS
from triton_converters.precision import check_precision
from triton_converters.publish import publish_directory, temporary_directory
from triton_converters.reasons import Reason
from triton_converters.replay import published_source, read_result
from triton_converters.repository import Conversion, find_conversion, publish_revision, write_conversion
from triton_converters.request import ConvertRequest
from triton_converters.result import ConvertResult, ReferenceResult, Signature
from triton_converters.source import SourceFile, digest_of, sha256_of
from triton_converters.user_code import location

WARNINGS = 4
"""Warnings kept, of WARNING_CHARACTERS each: all must fit into the termination message."""
WARNING_CHARACTERS = 240
MEANING_CHARACTERS = 500
"""Of an exporter's error, which may quote the whole graph."""


def run(request: ConvertRequest) -> ConvertResult:
    """Publish ``revisions/<key>/``, and ``candidates/<conversion key>/`` where it is missing.

    Raises StageError: ResultMissing (no reference), what ``load.pyt.load`` raises, ConversionFailed,
    ConversionUnsupported, NamingUnsupported, PrecisionMismatch; OSError where the claim is full.
    """
    reference = claim.reference_directory(request.reference)
    signature = read_result(reference, "reference", request.reference, ReferenceResult).signature
    candidate = claim.candidate_directory(request.conversion_key)
    conversion = find_conversion(candidate, request.conversion_key)
    if conversion is None:
        conversion = _convert(request, signature, candidate)
    return publish_revision(request, signature, conversion, next(read_batches(reference)))


def _convert(request: ConvertRequest, signature: Signature, target: Path) -> Conversion:
    """Convert, check the file's own data types, and publish it; gives the conversion of whoever was first."""
    started, collected = time.monotonic(), []
    with temporary_directory(target) as directory:
        collected += write_model(request, signature, directory)
        file = FORMATS[request.format].file
        data_types = check_precision(directory / file, request.format, request.precision)
        files = (file, *sorted(path.name for path in directory.iterdir() if path.name != file))
        result = ConvertResult(
            file_sha256=digest_of(
                {name: sha256_of(SourceFile(name, directory / name)) for name in files}, len(files) == 1
            ),
            file_bytes=sum((directory / name).stat().st_size for name in files),
            data_types=data_types,
            seconds=round(time.monotonic() - started, 3),
            warnings=tuple(dict.fromkeys(collected))[:WARNINGS],
        )
        conversion = Conversion(request.conversion_key, files, result)
        write_conversion(directory, conversion)
        if publish_directory(directory, target, lambda path: find_conversion(path, request.conversion_key) is not None):
            return conversion
    return find_conversion(target, request.conversion_key) or conversion


def write_model(request: ConvertRequest, signature: Signature, directory: Path) -> list[str]:
    """Load the model, cast it and write its file into ``directory``; gives what deserves a warning."""
    from triton_converters.convert.example import example_inputs
    from triton_converters.convert.task import Task
    from triton_converters.load import pyt

    framework = pyt.load(published_source(request.source), request.model, request.format)
    collected = _halve(framework.module) if request.precision == "fp16" else []
    batches = read_batches(claim.reference_directory(request.reference))
    dynamo = request.format == "onnx" and request.onnx_exporter == "Dynamo"
    example = example_inputs(batches, signature, at_least_two=dynamo)
    task = Task(request, framework, signature, example)
    convert: Callable[[Task, Path], None] = importlib.import_module(FORMATS[request.format].module).convert
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            convert(task, directory)
        except (StageError, OSError):
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"{request.format} {request.precision}: {_meaning(error)} (at {_place(error, framework)})"
            raise StageError(Reason.CONVERSION_FAILED, message) from error
    return collected + [_line(warning) for warning in caught if _concerns_user(warning, framework.source)]


def _halve(module: Any) -> list[str]:
    """Cast the weights to fp16 in place. One outside its range becomes infinite, not clamped: the gate sees it."""
    import torch

    finite = {name: bool(torch.isfinite(tensor).all()) for name, tensor in module.state_dict().items()}
    module.half()
    lost = [name for name, tensor in module.state_dict().items() if finite[name] and not torch.isfinite(tensor).all()]
    return [f"{name} has values outside the range of fp16 (65504)"[:WARNING_CHARACTERS] for name in lost]


def _concerns_user(warning: warnings.WarningMessage, source: Path) -> bool:
    """The tracer's warnings name what was frozen; of others, those of the libraries say nothing about this model."""
    return warning.category.__name__ == "TracerWarning" or Path(warning.filename).is_relative_to(source)


def _line(warning: warnings.WarningMessage) -> str:
    text = " ".join(str(warning.message).split())
    return f"{Path(warning.filename).name}:{warning.lineno}: {text}"[:WARNING_CHARACTERS]


def _meaning(error: BaseException) -> str:
    """What the error that began it says: exporters wrap theirs in advice, TorchScript puts its own last."""
    root = _root(error)
    lines = [line.strip() for line in str(root).splitlines() if line.strip(" ^~-=")]
    causes = [line for line in lines[1:] if re.match(r"\w+(Error|Exception): ", line)]
    text = causes[-1] if causes else " ".join([type(root).__name__ + ":", *lines])
    return f"{text[:MEANING_CHARACTERS]} ..." if len(text) > MEANING_CHARACTERS else text


def _place(error: BaseException, framework: Any) -> str:
    """File and line of the user's code: of its innermost frame, or where the exporter's text points."""
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', str(_root(error))):
        if Path(file).is_relative_to(framework.source):
            return f"{Path(file).relative_to(framework.source)}:{line}"
    return location(error, framework.source, framework.path)


def _root(error: BaseException) -> BaseException:
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error
