"""The input of the load: the reference's real samples, or the same values in the shapes that the spec asks for.

Requests of one sample have the samples' own shapes; if these differ, larger requests have a file for each shape
(``mixed_shapes``).
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array, read_inputs
from triton_converters.claim_store.replay import read_reference
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.input_shapes import shapes_fault
from triton_converters.contract.measurement_requests import InputShape, Load, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Mix, Signature, Tensor
from triton_converters.incoming.files import unfit
from triton_converters.measuring import mixed_shapes, perf_input
from triton_converters.measuring.mixed_shapes import Group, Picked
from triton_converters.measuring.perf_input import FILES_OF_SIZES, file_name
from triton_converters.measuring.settings import SETTINGS
from triton_converters.model_config.data_types import BYTES, numpy_type, objects, of_wire, strings
from triton_converters.model_config.shapes import requested

MIXED_FILE = "mixed.json"
"""perf_analyzer's input with samples of different shapes."""


@dataclass(frozen=True)
class OneShape:
    """A file for --input-data whose samples all have one shape."""

    file: str
    """The value of --input-data."""
    document: str
    """The file's content, as far as its first sample."""
    samples: int = 1
    """How many of all samples it stands for."""


@dataclass(frozen=True)
class LoadInput:
    """What requests are made of."""

    of_shapes: tuple[OneShape, ...]
    """A file for each shape that is measured, the smallest first; one if all samples have one shape."""
    mixed_file: str = ""
    """The value of --input-data for samples in their own shapes; empty: they all have one."""
    mixed_samples: int = 0
    """How many samples the mixed file holds."""

    def below(self, folder: Path) -> "LoadInput":
        """Return the files as they are named from where ``folder`` leads to them; the reference's keep their names."""
        of_shapes = tuple(replace(each, file=str(folder / each.file)) for each in self.of_shapes)
        return replace(self, of_shapes=of_shapes, mixed_file=self.mixed_file and str(folder / self.mixed_file))


def check_shapes(shapes: Sequence[InputShape], signature: Signature) -> None:
    """Raise StageError(InvalidSpec) if a shape of spec.performance.inputShapes does not fit the signature."""
    if fault := shapes_fault(shapes, signature):
        raise StageError(Reason.INVALID_SPEC, fault)


def reshape(document: str, shapes: Sequence[InputShape], signature: Signature) -> str:
    """Return perf_analyzer's input data with other shapes: real values, repeated or cut, so that they stay in range.

    ``document``: the reference's file, with one step for each sample and content in base64.
    """
    wanted = {shape.input: shape.dims for shape in shapes}
    types = {tensor.name: tensor.data_type for tensor in signature.inputs}
    steps = json.loads(document)["data"]
    for step in steps:
        for name in wanted.keys() & step.keys():
            step[name] = perf_input.content(numpy.resize(_values(step[name], types[name]), wanted[name]), wanted[name])
    return json.dumps({"data": steps}, separators=(",", ":"))


def varying_shapes(document: str, signature: Signature) -> tuple[InputShape, ...]:
    """Return the first step's shapes of inputs with a dimension of -1, which perf_analyzer needs to be told."""
    first = json.loads(document)["data"][0]
    return tuple(
        InputShape(tensor.name, tuple(first[tensor.name]["shape"])) for tensor in signature.inputs if -1 in tensor.dims
    )


def first_request(document: str, signature: Signature) -> dict[str, Array]:
    """Return the first step as an inference request of one sample, in the shapes that the server declares."""
    first = json.loads(document)["data"][0]
    return {
        tensor.name: _tensor(first[tensor.name], tensor, signature.max_batch_size > 0) for tensor in signature.inputs
    }


def prepare(
    reference: Path, directory: Path, shapes: Sequence[InputShape], signature: Signature, batch_size: int = 1
) -> LoadInput:
    """Return the files for perf_analyzer.

    ``batch_size``: for a model without a batch dimension, the samples in each request that the dataloader made. What is
    not the reference's own file is written to ``directory`` and named without a folder, so that the command line stays
    valid wherever perf_analyzer's working directory is moved. Raises StageError(InvalidSpec).
    """
    check_shapes(shapes, signature)
    if chosen := _mixed(reference, shapes, signature, batch_size):
        return _write_mixed(reference, directory, signature, chosen)
    file = file_name(signature.max_batch_size, batch_size)
    document = (reference / file).read_text(encoding="utf-8")
    if not shapes:
        return LoadInput((OneShape(str(reference / file), _first(document)),))
    document = reshape(document, shapes, signature)
    (directory / file).write_text(document, encoding="utf-8")
    return LoadInput((OneShape(file, _first(document)),))


def _first(document: str) -> str:
    return perf_input.to_json(json.loads(document)["data"][:1])


def describe(reference: Path, shapes: Sequence[InputShape], signature: Signature, sweep: Sweep) -> Mix | None:
    """Return the shapes that the samples of a sweep have; None if all have one."""
    chosen = _mixed(reference, shapes, signature, max(sweep.batch_sizes, default=1))
    return mixed_shapes.describe(chosen, signature) if chosen else None


def check_mix(told: Mix | None, key: str, load: Load, sweep: Sweep, what: Path) -> None:
    """Raise StageError(Crashed) if what a client says of the shapes is not what the reference with that key holds."""
    signature = read_reference(key).signature
    if told != describe(layout.reference_directory(key), load.input_shapes, signature, sweep):
        raise unfit(what, "the shapes that it tells of are not those of the reference's samples")


def _mixed(reference: Path, shapes: Sequence[InputShape], signature: Signature, batch_size: int) -> tuple[Picked, ...]:
    """Return the samples to send in their own shapes, in their order; none if they have one shape.

    Without a batch dimension, the reference holds single samples only if nothing else was asked for.
    """
    if shapes or not any(-1 in tensor.dims for tensor in signature.inputs):
        return ()
    if not signature.max_batch_size and (batch_size > 1 or len(list(reference.glob(FILES_OF_SIZES))) > 1):
        return ()
    chosen = mixed_shapes.sent([sample for sample, _ in _samples(reference, signature)], SETTINGS.input_bytes)
    return chosen if mixed_shapes.is_mixed(chosen) else ()


def _samples(reference: Path, signature: Signature) -> Iterator[tuple[Picked, dict[str, Array]]]:
    """Yield each sample of the reference, in its order, and its inputs."""
    for number, inputs in enumerate(read_inputs(reference)):
        for index, sample in enumerate(perf_input.samples_of(inputs, signature.max_batch_size > 0)):
            sizes = tuple(requested(tensor, sample[tensor.name].shape) for tensor in signature.inputs)
            yield Picked(number, index, sizes, perf_input.encoded_bytes(sample)), dict(sample)


def _write_mixed(reference: Path, directory: Path, signature: Signature, chosen: Sequence[Picked]) -> LoadInput:
    declared = {tensor.name: tensor for tensor in signature.inputs}
    wanted = set(chosen)
    steps = {
        sample: perf_input.step(inputs, declared)
        for sample, inputs in _samples(reference, signature)
        if sample in wanted
    }
    (directory / MIXED_FILE).write_text(perf_input.to_json([steps[each] for each in chosen]), encoding="utf-8")

    def one_shape(number: int, group: Group) -> OneShape:
        file = f"shape-{number}.json"
        left = SETTINGS.input_bytes // SETTINGS.most_shapes
        taken: list[dict[str, Any]] = []
        for each in chosen:
            if each.shapes == group.shapes and (not taken or each.size <= left):
                taken.append(steps[each])
                left -= each.size
        (directory / file).write_text(perf_input.to_json(taken), encoding="utf-8")
        return OneShape(file, perf_input.to_json(taken[:1]), group.samples)

    parts = tuple(one_shape(number, group) for number, group in enumerate(mixed_shapes.groups(chosen), start=1))
    return LoadInput(parts, MIXED_FILE, len(chosen))


def _tensor(step: dict[str, Any], tensor: Tensor, batched: bool) -> Array:
    values = _values(step, tensor.data_type).reshape(step["shape"])
    return values[None] if batched else values


def _values(step: dict[str, Any], data_type: str) -> Array:
    """Return all elements of a step's tensor, flat."""
    if data_type == BYTES and isinstance(step["content"], list):
        return strings(objects(step["content"], (len(step["content"]),)))
    raw = base64.b64decode(step["content"]["b64"])
    return of_wire(raw) if data_type == BYTES else numpy.frombuffer(raw, dtype=numpy_type(data_type).newbyteorder("<"))
