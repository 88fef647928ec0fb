"""Format ``trt``: a TensorRT engine, built from the source's ONNX graph, which carries the precision."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from triton_converters.claim_store import inspection
from triton_converters.claim_store.dump import Batch, read_batches
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS, THROUGH
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.convert import onnx_graph, tensorrt_library
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import Task
from triton_converters.convert.task import convert as convert_along
from triton_converters.convert.tensorrt_library import Shapes
from triton_converters.gates.precision import TYPES_BY_PRECISION

_TYPES = {"HALF": "FP16", "FP16": "FP16", "FLOAT": "FP32", "FP32": "FP32", "BF16": "BF16", "BFLOAT16": "BF16"}
_TYPE = re.compile(r"(?:Format/)?Datatype\"?: \"?([^,\"}\]]+)", re.IGNORECASE)


def convert(task: Task, directory: Path) -> None:
    """Write model.plan and its inspection.

    Loads the library first: without it there is no need to export. Raises StageError: what the source's
    converter into ONNX raises, what ``tensorrt_library.build`` raises, PrecisionMismatch.
    """
    library = tensorrt_library.load()
    through = THROUGH[task.request.format]
    convert_along(task.towards(through), directory)
    graph = directory / FORMATS[through].file
    if task.half:
        onnx_graph.save(to_fp16(onnx_graph.load(graph)), graph)
    batches = read_batches(layout.reference_directory(task.request.reference))
    shapes = profile_shapes(batches, task.signature, task.request.optimal_batch_size)
    timing = task.timing_caches.known(library.version)
    known = timing.read_bytes() if timing.exists() else b""
    engine = tensorrt_library.build(library, graph, shapes, task.request.tensorrt, known)
    if engine.timing_cache and engine.timing_cache != known:
        task.timing_caches.new.write_bytes(engine.timing_cache)
    for path in directory.iterdir():
        path.unlink()
    (directory / FORMATS[task.request.format].file).write_bytes(engine.plan)
    wanted = "" if task.request.keeps_types else TYPES_BY_PRECISION[task.request.precision][0]
    data_types = computed_types(engine.layers, wanted)
    inspection.write(directory, data_types, engine.tensors, library.version, task.request.gpu_product)


def profile_shapes(batches: Iterable[Batch], signature: Signature, optimal: int) -> Shapes:
    """Return the smallest, the optimal and the largest shape by input, for the batch and every varying dimension.

    The batch goes from 1 to the maximum and is optimal at ``optimal`` samples; 0: at the maximum. Other dimensions go
    from the smallest to the largest that the reference saw; each is optimal at its most frequent size in the reference,
    the larger of two.
    """
    offset = 1 if signature.max_batch_size else 0
    seen: dict[str, list[Counter[int]]] = {}
    for batch in batches:
        for tensor in signature.inputs:
            shape = batch.inputs[tensor.name].shape[offset:]
            counters = seen.setdefault(tensor.name, [Counter() for _ in shape])
            for counter, size in zip(counters, shape, strict=True):
                counter[size] += len(batch.ids)
    largest = signature.max_batch_size
    sizes = (1, optimal or largest, largest) if offset else ()
    shapes = {}
    for name, counters in seen.items():
        usual = tuple(max((count, size) for size, count in counter.items())[1] for counter in counters)
        least, most = tuple(map(min, counters)), tuple(map(max, counters))
        shapes[name] = (sizes[:1] + least, sizes[1:2] + usual, sizes[2:] + most)
    return shapes


def computed_types(layers: str, wanted: str) -> tuple[str, ...]:
    """Return the floating point types that the engine's layers compute in, ``wanted`` first.

    ``layers``: one line for each layer. ``wanted`` empty: those of the most layers come first. A layer counts as fp16
    if any of its tensors or weights is. Raises StageError(PrecisionMismatch) if no layer computes in ``wanted``.
    """
    counted: Counter[str] = Counter()
    for line in layers.splitlines():
        found = {kind for text in _TYPE.findall(line) if (kind := _type(text))}
        if "LayerType" in line or "Name" in line:
            counted.update({"FP16"} if "FP16" in found else found)
    if not wanted:
        return tuple(name for name, _ in counted.most_common())
    if wanted not in counted:
        built = ", ".join(f"{count} {name}" for name, count in counted.most_common()) or "none with a floating type"
        message = f"the engine has no layer in {wanted}; its layers are: {built}"
        raise StageError(Reason.PRECISION_MISMATCH, message)
    return (wanted, *(name for name, _ in counted.most_common() if name != wanted))


def _type(text: str) -> str | None:
    """Return Triton's name of a type in TensorRT's words: ``Half``, or ``Row major linear FP16 format``."""
    return next((_TYPES[word] for word in re.findall(r"\w+", text.upper()) if word in _TYPES), None)
