"""The values of a config.pbtxt that the user wrote: those that are not taken, each with what to do. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tritonclient.grpc import model_config_pb2

from triton_converters.contract.backend_parameters import LONGEST_VALUE, MOST, PARAMETERS, VALUE
from triton_converters.contract.results import Tensor
from triton_converters.contract.text import quoted
from triton_converters.contract.uris import SEGMENT
from triton_converters.model_config.data_types import BYTES, TRITON_BY_NUMPY
from triton_converters.model_config.shapes import differ_by_ones

LARGEST_BATCH, MOST_INSTANCES, MOST_PREFERRED, LONGEST_DELAY = 65536, 64, 16, 60_000_000
MOST_TENSORS, MOST_DIMS, LONGEST_NAME = 64, 16, 128
"""The limits of the spec's fields, and of the status."""
NAMED = 8
"""The most names that one sentence has."""
FULL = ("pytorch", "tensorflow")
"""Backends whose models have no inputs and outputs in FP16."""
FILES = re.compile("path|file|librar|director|env", re.IGNORECASE)
"""Words in the name of a parameter from which a server may load code. Others change nothing if they are left out."""


def faults(message: Any, backend: str) -> Iterator[str]:
    """Yield what is wrong; ``backend``: a key of PARAMETERS, or empty if only the model's file tells."""
    file = message.default_model_filename
    if file and not re.fullmatch(SEGMENT, file):
        yield "default_model_filename must be a plain name: correct it"
    # What PyTorch and TensorFlow run is converted in float32.
    types = [each for each in TRITON_BY_NUMPY.values() if each != "FP16" or backend not in FULL]
    yield from _of_tensors(message.input, "input", types)
    yield from _of_tensors(message.output, "output", types)
    yield from _of_instances(message.instance_group)
    yield from _of_batching(message)
    if bool(message.input) != bool(message.output):
        yield "it lists inputs or outputs alone: list both or, for ONNX and SavedModel, neither"
    if backend:
        yield from of_parameters(message.parameters, backend)


def tensor(value: Any) -> Tensor:
    """Return an input or output of which ``faults`` yields nothing."""
    kind = _kind(value)
    dims = tuple(value.dims)
    if not value.HasField("reshape"):
        return Tensor(value.name, kind, dims)
    own = tuple(value.reshape.shape)
    # Triton has no empty dims, so [1] stands for them.
    return Tensor(value.name, kind, own, () if (own or (1,)) == dims else dims)


def parameters(given: Any, backend: str) -> dict[str, str]:
    """Return those that the backend reads, by name, of which ``of_parameters`` yields nothing."""
    return {name: each.string_value for name, each in sorted(given.items()) if name in PARAMETERS[backend]}


def batches_nothing(message: Any) -> bool:
    """Whether the dynamic batcher is on for a model without a batch dimension, where it only passes requests on."""
    has_batches = bool(message.max_batch_size) or not message.input
    fields = {field.name for field, _ in message.dynamic_batching.ListFields()}
    return message.HasField("dynamic_batching") and not has_batches and fields <= {"max_queue_delay_microseconds"}


def unread(given: Any, backend: str) -> list[str]:
    """Return the names of parameters that the backend does not read, such as metadata of an exporter."""
    return [quoted(name) for name in sorted(given) if name not in PARAMETERS[backend]]


def of_parameters(given: Any, backend: str) -> Iterator[str]:
    """Yield what is wrong with the parameters."""
    if files := [name for name in sorted(given) if name not in PARAMETERS[backend] and FILES.search(name)]:
        names = ", ".join(map(quoted, files[:NAMED]))
        yield f"parameters must not have {names}: remove them; docs/formats.md lists what may be set"
    read = parameters(given, backend)
    wrong = [name for name, value in read.items() if len(value) > LONGEST_VALUE or not re.fullmatch(VALUE[1:-1], value)]
    if wrong or len(read) > MOST:
        yield f"parameters {', '.join(wrong[:NAMED])} must be a number, a flag or a word: correct them"


def _of_tensors(values: Any, side: str, types: Sequence[str]) -> Iterator[str]:
    if len(values) > MOST_TENSORS:
        yield f"it has more than {MOST_TENSORS} {side}s"
        return
    names = [each.name for each in values]
    if len(set(names)) != len(names):
        yield f"it names an {side} twice: remove one"
    for each in values:
        yield from _of_tensor(each, side, types)


def _of_tensor(value: Any, side: str, types: Sequence[str]) -> Iterator[str]:
    if not 0 < len(value.name) <= LONGEST_NAME or not value.name.isprintable():
        yield f"the name of an {side} must have 1 to {LONGEST_NAME} printable characters: correct it"
        return
    kind = _kind(value)
    if kind not in (*types, BYTES):
        yield f"{side} {value.name} is {kind}: a tensor may be {', '.join(types)} or STRING"
    dims = tuple(value.dims)
    if not dims or not _are_sizes(dims):
        yield f"dims of {side} {value.name} must be 1 to {MOST_DIMS} sizes, each positive or -1: correct them"
    elif value.HasField("reshape"):
        own = tuple(value.reshape.shape)
        if not _are_sizes(own) or not differ_by_ones(dims, own):
            yield (
                f"{side}.reshape of {value.name} is not supported: it may only add and remove dimensions of 1; declare"
                " the shape that the model's file has"
            )


def _are_sizes(dims: tuple[int, ...]) -> bool:
    return len(dims) <= MOST_DIMS and all(size > 0 or size == -1 for size in dims)


def _kind(value: Any) -> str:
    """Return Triton's name of a tensor's type in requests."""
    # A text may have any number in the place of a name.
    names = {number: name for name, number in model_config_pb2.DataType.items()}
    kind = str(names.get(value.data_type, value.data_type)).removeprefix("TYPE_")
    return BYTES if kind == "STRING" else kind


def _of_instances(groups: Any) -> Iterator[str]:
    if len(groups) > 1:
        yield "it has several instance groups, but the server has one: keep one, with the count"
    for group in groups[:1]:
        if not 0 <= group.count <= MOST_INSTANCES:
            yield f"instance_group.count must be at most {MOST_INSTANCES}: lower it"
        if group.kind == model_config_pb2.ModelInstanceGroup.KIND_MODEL:
            yield "instance_group.kind KIND_MODEL is not supported: remove it; spec.gpu says what is used"


def _of_batching(message: Any) -> Iterator[str]:
    # A file that lists its tensors has no batch dimension if it does not name one.
    largest = message.max_batch_size if message.input or message.max_batch_size else None
    if largest is not None and not 0 <= largest <= LARGEST_BATCH:
        yield f"max_batch_size must be 0 to {LARGEST_BATCH}: correct it"
    if message.HasField("dynamic_batching") and largest == 0 and not batches_nothing(message):
        yield "dynamic_batching needs a max_batch_size of at least 1: remove it, or set that"
    sizes = message.dynamic_batching.preferred_batch_size
    if len(sizes) > MOST_PREFERRED or not all(1 <= each <= (largest or LARGEST_BATCH) for each in sizes):
        yield f"preferred_batch_size must be at most {MOST_PREFERRED} sizes, up to max_batch_size: correct them"
    if message.dynamic_batching.max_queue_delay_microseconds > LONGEST_DELAY:
        yield f"max_queue_delay_microseconds must be at most {LONGEST_DELAY}: lower it"
