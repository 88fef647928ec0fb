"""What is taken of a config.pbtxt that the user wrote for a server of their own. Pure.

Whatever is not known to be harmless and measurable is refused, with a reason: a field may name a library, another
backend or an environment, and a server would run it. Triton's own message parses the text, which is hostile until then.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2

from triton_converters.contract import overrides
from triton_converters.contract.backend_parameters import LONGEST_VALUE, MOST, PARAMETERS, VALUE
from triton_converters.contract.formats import PYTORCH
from triton_converters.contract.model_repository import PYTHON_BACKEND
from triton_converters.contract.results import RepositoryModel, Tensor
from triton_converters.contract.text import printable
from triton_converters.contract.uris import SEGMENT
from triton_converters.model_config.data_types import BYTES, NUMPY_BY_TRITON, SERVED

LONGEST = 64 * 1024
"""The limit of the file, in bytes."""
LARGEST_BATCH, MOST_INSTANCES, MOST_PREFERRED, LONGEST_DELAY = 65536, 64, 16, 60_000_000
MOST_TENSORS, MOST_DIMS, LONGEST_NAME, LONGEST_OVERRIDES = 64, 16, 128, 4096
"""The limits of the spec's fields, and of the status."""
NAMED = 8
"""The most fields that one message names."""
BACKENDS = {
    "onnxruntime": "onnxruntime",
    "onnxruntime_onnx": "onnxruntime",
    PYTORCH: PYTORCH,
    "pytorch_libtorch": PYTORCH,
    "tensorflow": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
}
"""Backends by their names in `backend` and `platform`."""
OTHER_BACKENDS = {
    "python": PYTHON_BACKEND,
    "tensorrt": "a TensorRT engine has no reference, because only the TensorRT that built it runs it: give the ONNX"
    " file that it was built from, and list a candidate of format trt",
    "ensemble": "list the models of the ensemble in spec.models, each with its own path, and connect them in"
    " spec.ensemble",
    "tensorflow_graphdef": "save the graph as a SavedModel",
}
"""What to do instead of a backend that is not served."""
OTHER_BACKENDS["tensorrt_plan"] = OTHER_BACKENDS["tensorrt"]
TAKEN = frozenset(
    (
        *("name", "platform", "backend", "default_model_filename", "max_batch_size", "parameters", "input", "output"),
        *("version_policy.latest", "version_policy.latest.num_versions", "version_policy.all"),
        *("version_policy", "version_policy.specific", "version_policy.specific.versions"),
        *(f"{side}.{field}" for side in ("input", "output") for field in ("name", "data_type", "dims", "reshape")),
        *("input.format", "instance_group.count", "instance_group.kind", "instance_group.name"),
        *("dynamic_batching.preferred_batch_size", "dynamic_batching.max_queue_delay_microseconds"),
        *("optimization.cuda.graphs", "model_warmup"),
        # Only a message that sets nothing has this path.
        *("response_cache", "model_transaction_policy"),
    )
)
"""The fields that are taken, besides those of ``contract.overrides``, and those that change nothing here: the object
says the model's name, `spec.gpu` the kind of instances, and the operator writes a warm-up of its own."""
WHOLE = frozenset({"model_warmup", "input.reshape", "output.reshape"})
"""Messages that are taken, or judged, whole."""
SCALAR = "only dims: [ 1 ] with reshape { shape: [ ] } is served; declare the shape that the model's file has"
REFUSED = {
    "ensemble_scheduling": OTHER_BACKENDS["ensemble"],
    "sequence_batching": "the gates send no correlation IDs",
    "response_cache": "a sweep would measure the cache",
    "model_operations": "it names libraries, and a library is code",
    "model_repository_agents": "an agent is code",
    "cc_model_filenames": "every GPU gets the same file",
    "runtime": "it names a program, and a program is code",
    "input.allow_ragged_batch": "ragged batches cannot be compared with the reference",
    "batch_input": "ragged batches cannot be compared with the reference",
    "batch_output": "ragged batches cannot be compared with the reference",
    "input.optional": "the reference and the sweeps send every input",
    "input.reshape": SCALAR,
    "output.reshape": SCALAR,
    "output.label_filename": "no file with labels is served, and answers hold numbers",
    "optimization.execution_accelerators": "list a candidate with the accelerator in models[].candidates",
    "instance_group.gpus": "spec.gpu says how many GPUs the server has, and it uses all of them",
    "instance_group.secondary_devices": "spec.gpu says how many GPUs the server has, and it uses all of them",
    "model_transaction_policy": "the gates expect one answer for each request",
}
"""Why, or what to do instead, by field; a longer path counts as its beginning."""


class RefusedError(ValueError):
    """A config.pbtxt that is not taken; the text says why, and what to do."""


@dataclass(frozen=True)
class Given:
    """A config.pbtxt whose fields may all be taken."""

    backend: str
    """A key of PARAMETERS; empty: the model's file tells."""
    file: str
    """Name of the model's file in a version's folder; empty: the backend's default."""
    versions: tuple[int, ...]
    """The versions that may be served; empty: all."""
    message: Any

    def taken(self, file: str, backend: str) -> RepositoryModel:
        """Return what is taken for the model's file, with its backend. Raises RefusedError."""
        message, batching = self.message, self.message.dynamic_batching
        inputs, outputs = _tensors(message.input, "input"), _tensors(message.output, "output")
        if bool(inputs) != bool(outputs):
            raise RefusedError("it lists inputs or outputs alone: list both or, for ONNX and SavedModel, neither")
        if not inputs and backend == PYTORCH:
            raise RefusedError("a TorchScript file does not name its tensors: list input and output")
        batched = bool(inputs) or message.max_batch_size != 0
        found = RepositoryModel(
            file=file,
            max_batch_size=message.max_batch_size if batched else None,
            inputs=inputs,
            outputs=outputs,
            instances=_instances(message.instance_group),
            dynamic_batching=message.HasField("dynamic_batching"),
            preferred_batch_sizes=tuple(batching.preferred_batch_size),
            max_queue_delay_microseconds=batching.max_queue_delay_microseconds,
            cuda_graphs=message.optimization.cuda.graphs,
            parameters=_parameters(message.parameters, backend),
            overrides=_overrides(message),
        )
        _check_batching(found)
        return found


def read(text: bytes) -> Given:
    """Return the configuration. Raises RefusedError: no config.pbtxt, or one with a field that is not taken."""
    if len(text) > LONGEST:
        raise RefusedError(f"it is longer than {LONGEST} bytes")
    message = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(text.decode(), message)
    except (text_format.ParseError, ValueError, RecursionError) as error:
        words = printable(" ".join(str(error).split()))[:300]
        raise RefusedError(f"it is no config.pbtxt that this version knows: {words}") from error
    wrong = (path for path in _paths(message) if path not in TAKEN and not overrides.is_allowed(path))
    faults = [*_backend_faults(message), *dict.fromkeys(map(_fault, wrong))]
    if faults:
        more = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise RefusedError("; ".join(faults[:NAMED]) + more)
    file = message.default_model_filename
    if file and not re.fullmatch(SEGMENT, file):
        raise RefusedError("default_model_filename must be a plain name: correct it")
    return Given(
        next((BACKENDS[each] for each in (message.backend, message.platform) if each), ""),
        file,
        tuple(message.version_policy.specific.versions),
        message,
    )


def _fault(path: str) -> str:
    """Return why a field is refused, by the longest beginning of its path that is known."""
    known = max((each for each in REFUSED if f"{path}.".startswith(f"{each}.")), key=len, default="")
    return f"{known} is not supported: {REFUSED[known]}; remove it" if known else f"{path} is not supported: remove it"


def _backend_faults(message: Any) -> Iterator[str]:
    for field, name in (("backend", message.backend), ("platform", message.platform)):
        if name and name not in BACKENDS:
            instead = OTHER_BACKENDS.get(name, f"the operator serves {', '.join(dict.fromkeys(BACKENDS.values()))}")
            yield f"{field} {printable(name)[:60]!r} is not supported: {instead}"
    if len({BACKENDS.get(each, each) for each in (message.backend, message.platform) if each}) > 1:
        yield "backend and platform differ: remove one"


def _tensors(values: Any, side: str) -> tuple[Tensor, ...]:
    if len(values) > MOST_TENSORS:
        raise RefusedError(f"it has more than {MOST_TENSORS} {side}s")
    found = tuple(_tensor(each, side) for each in values)
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise RefusedError(f"it names an {side} twice: remove one")
    return found


def _tensor(value: Any, side: str) -> Tensor:
    if not 0 < len(value.name) <= LONGEST_NAME or not value.name.isprintable():
        raise RefusedError(f"the name of an {side} must have 1 to {LONGEST_NAME} printable characters: correct it")
    kind = model_config_pb2.DataType.Name(value.data_type).removeprefix("TYPE_")
    kind = BYTES if kind == "STRING" else kind
    if kind != BYTES and NUMPY_BY_TRITON.get(kind) not in SERVED:
        raise RefusedError(f"{side} {value.name} is {kind}, but ioPrecision is fp32: {_types()}")
    dims = tuple(value.dims)
    if value.HasField("reshape"):
        if value.reshape.shape or dims != (1,):
            raise RefusedError(_fault(f"{side}.reshape"))
        dims = ()
    elif not 0 < len(dims) <= MOST_DIMS or any(size < 1 and size != -1 for size in dims):
        raise RefusedError(
            f"dims of {side} {value.name} must be 1 to {MOST_DIMS} sizes, each positive or -1: correct them"
        )
    return Tensor(value.name, kind, dims)


def _types() -> str:
    names = (triton for triton, name in NUMPY_BY_TRITON.items() if name in SERVED)
    return f"a tensor may be {', '.join(names)} or STRING"


def _instances(groups: Any) -> int | None:
    if len(groups) > 1:
        raise RefusedError("it has several instance groups, but the server has one: keep one, with the count")
    count = groups[0].count if groups else 0
    if not 0 <= count <= MOST_INSTANCES:
        raise RefusedError(f"instance_group.count must be at most {MOST_INSTANCES}: lower it")
    if groups and groups[0].kind == model_config_pb2.ModelInstanceGroup.KIND_MODEL:
        raise RefusedError("instance_group.kind KIND_MODEL is not supported: remove it; spec.gpu says what is used")
    return count or None


def _check_batching(found: RepositoryModel) -> None:
    largest = found.max_batch_size
    if largest is not None and not 0 <= largest <= LARGEST_BATCH:
        raise RefusedError(f"max_batch_size must be 0 to {LARGEST_BATCH}: correct it")
    if found.dynamic_batching and largest == 0:
        raise RefusedError("dynamic_batching needs a max_batch_size of at least 1: remove it, or set that")
    sizes = found.preferred_batch_sizes
    if len(sizes) > MOST_PREFERRED or not all(1 <= each <= (largest or LARGEST_BATCH) for each in sizes):
        raise RefusedError(
            f"preferred_batch_size must be at most {MOST_PREFERRED} sizes, up to max_batch_size: correct them"
        )
    if found.max_queue_delay_microseconds > LONGEST_DELAY:
        raise RefusedError(f"max_queue_delay_microseconds must be at most {LONGEST_DELAY}: lower it")


def _parameters(given: Any, backend: str) -> dict[str, str]:
    found = {name: each.string_value for name, each in sorted(given.items())}
    if unknown := [name for name in found if name not in PARAMETERS[backend]]:
        names = ", ".join(f"{printable(name)[:60]}" for name in unknown[:NAMED])
        raise RefusedError(f"parameters must not have {names}: remove them; docs/formats.md lists what may be set")
    wrong = [
        name for name, value in found.items() if len(value) > LONGEST_VALUE or not re.fullmatch(VALUE[1:-1], value)
    ]
    if wrong or len(found) > MOST:
        raise RefusedError(f"parameters {', '.join(wrong[:NAMED])} must be a number, a flag or a word: correct them")
    return found


def _overrides(message: Any) -> str:
    """Return the fields that ``contract.overrides`` allows, as text."""
    kept = model_config_pb2.ModelConfig()
    kept.CopyFrom(message)
    _prune(kept)
    text = str(text_format.MessageToString(kept))
    if len(text) > LONGEST_OVERRIDES:
        raise RefusedError(f"its queue policies and resources are longer than {LONGEST_OVERRIDES} characters as text")
    try:
        overrides.checked(text)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    return text


SAYING = ("optimization.input_pinned_memory", "optimization.output_pinned_memory")
"""Messages that say something although they are empty: pinned memory is not used."""


def _prune(message: Message, above: str = "") -> None:
    """Remove what is no override, and messages of which nothing is left."""
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        if not overrides.is_allowed(path):
            message.ClearField(field.name)
        elif field.message_type is not None and not _is_map(field):
            for each in _messages(value):
                _prune(each, f"{path}.")
            if path not in SAYING and not any(each.ListFields() for each in _messages(value)):
                message.ClearField(field.name)


def _paths(message: Message, above: str = "") -> Iterator[str]:
    """Yield the path of each field that is set, and of each message that sets nothing; a map is one field."""
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        if field.message_type is None or _is_map(field) or path in WHOLE:
            yield path
        else:
            for each in _messages(value):
                yield from _paths(each, f"{path}.") if each.ListFields() else [path]


def _messages(value: Any) -> Iterable[Message]:
    return [value] if isinstance(value, Message) else value


def _is_map(field: Any) -> bool:
    return bool(field.message_type.GetOptions().map_entry)
