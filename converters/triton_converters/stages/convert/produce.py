"""Load the model and convert it, for every conversion that is missing."""

import time
import traceback
import warnings
from pathlib import Path

from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.replay import published_source
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.convert import exporter_words
from triton_converters.convert.comparison import max_absolute_error
from triton_converters.convert.example import example_inputs
from triton_converters.convert.task import ConversionWarning, Task, TimingCaches, convert
from triton_converters.incoming import documents
from triton_converters.incoming.documents import Converted
from triton_converters.load import framework, gpu, hub_files
from triton_converters.stages.convert.parts import (
    document,
    known_timing_cache,
    named,
    parts,
    signature,
    timing_cache,
)
from triton_converters.user import rehearsal


def run(request: ConvertRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write ``<conversion key>/`` for every missing conversion.

    Raises StageError: what the model's loader raises, ConversionFailed, ConversionUnsupported,
    TensorRtUnavailable, PrecisionMismatch, GainsNothing.
    """
    # Two models of an ensemble may share a conversion.
    chosen = {part.conversion_key: part for part in parts(request) if part.conversion_key in missing}.values()
    with hub_files.offered(published_source(request.source), [part.model for part in chosen]):
        for part in chosen:
            with named(part):
                _convert(part, incoming)


def _convert(request: ConvertRequest, incoming: Path) -> None:
    started = time.monotonic()
    directory = incoming / request.conversion_key
    directory.mkdir()
    form = signature(request)
    collected = write_model(request, form, directory)
    collected += _absent_operators(request, directory)
    quantized = _quantized(request, form, directory)
    if quantized is not None:
        # Of a model of an ensemble, no status tells.
        print(f"{request.model_name}: {quantized.words()}", flush=True)
    error, doubts = max_absolute_error(request, form, directory)
    words = documents.first_warnings(dict.fromkeys((*collected, *doubts)))
    seconds = round(time.monotonic() - started, 3)
    found = Converted(words, seconds, error, rehearsal.took_place(), gpu.device_name(), quantized)
    documents.write(incoming, document(request.conversion_key), found)


def _absent_operators(request: ConvertRequest, directory: Path) -> list[str]:
    """Return a warning for operators that should stay in fp32 and that the graph, not quantized yet, does not have."""
    if request.quantization is None or not request.quantization.excluded_operators:
        return []
    from triton_converters.convert import onnx_exclusion, onnx_graph

    model = onnx_graph.load(directory / FORMATS[request.format].file)
    absent = onnx_exclusion.absent(model, request.quantization.excluded_operators)
    return [f"quantization.excludedOperators: the graph has no {', '.join(absent)}"] if absent else []


def _quantized(request: ConvertRequest, form: Signature, directory: Path) -> Quantized | None:
    """Quantize the file if the request says so; images without ONNX Runtime are never asked to."""
    if request.quantization is None:
        return None
    from triton_converters.convert import onnx_int8

    return onnx_int8.quantize(request, form, directory)


def write_model(request: ConvertRequest, signature: Signature, directory: Path) -> list[str]:
    """Load the model and write it in the requested format into ``directory``; returns warnings for the user.

    Raises StageError(ConversionFailed) if the converter fails by another error.
    """
    model = framework.load(published_source(request.source), request.model, request.format)
    batches = read_batches(layout.reference_directory(request.reference))
    example = example_inputs(batches, signature)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            convert(Task(request, model, signature, example, _timing_caches(request, directory)), directory)
        except (StageError, OSError):
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"{request.format} {request.precision}: {exporter_words.told(error, model)}"
            raise StageError(Reason.CONVERSION_FAILED, message) from error
    # Only the first few are kept, and a tracer may have many.
    caught.sort(key=lambda warning: not issubclass(warning.category, ConversionWarning))
    return [_line(warning) for warning in caught if _concerns_user(warning, model.source)]


def _timing_caches(request: ConvertRequest, directory: Path) -> TimingCaches:
    incoming = directory.parent
    return TimingCaches(
        lambda version: known_timing_cache(incoming, version), incoming / timing_cache(request.conversion_key)
    )


def _concerns_user(warning: warnings.WarningMessage, source: Path) -> bool:
    """Whether a warning is about this model: from the tracer (what was frozen), a converter or user code."""
    telling = issubclass(warning.category, ConversionWarning) or warning.category.__name__ == "TracerWarning"
    return telling or Path(warning.filename).is_relative_to(source)


def _line(warning: warnings.WarningMessage) -> str:
    text = " ".join(str(warning.message).split())
    own = issubclass(warning.category, ConversionWarning)
    return text if own else f"{Path(warning.filename).name}:{warning.lineno}: {text}"
