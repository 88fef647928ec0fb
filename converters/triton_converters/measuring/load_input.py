"""The input of the load: the reference's real samples, or the same values in the shapes that the spec asks for."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import InputShape
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.measuring import perf_input
from triton_converters.measuring.perf_input import file_name
from triton_converters.model_config.data_types import BYTES, numpy_type


def check_shapes(shapes: Sequence[InputShape], signature: Signature) -> None:
    """Raise StageError(InvalidSpec) if a shape of spec.performance.inputShapes does not fit the signature."""
    by_name = {tensor.name: tensor for tensor in signature.inputs}
    for shape in shapes:
        tensor = by_name.get(shape.input)
        if tensor is None:
            message = f"the model has no input {shape.input!r}; it has: {', '.join(by_name)}"
            raise _invalid(message)
        dims = tensor.served_dims
        fits = len(dims) == len(shape.dims) and all(
            declared in (-1, asked) for declared, asked in zip(dims, shape.dims, strict=True)
        )
        if not fits:
            raise _invalid(
                f"{list(shape.dims)} does not fit input {shape.input}, whose dimensions are {list(dims)} (-1: varies)"
            )


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
) -> tuple[str, str]:
    """Return the value of --input-data and the document itself.

    ``batch_size``: for a model without a batch dimension, the samples in each request that the dataloader made. With
    ``shapes``, a new file is written to ``directory``, perf_analyzer's working directory, and named without a folder,
    so that the command line stays valid wherever the directory is moved. Raises StageError(InvalidSpec).
    """
    check_shapes(shapes, signature)
    file = file_name(signature.max_batch_size, batch_size)
    document = (reference / file).read_text(encoding="utf-8")
    if not shapes:
        return str(reference / file), document
    document = reshape(document, shapes, signature)
    (directory / file).write_text(document, encoding="utf-8")
    return file, document


def _tensor(step: dict[str, Any], tensor: Tensor, batched: bool) -> Array:
    values = _values(step, tensor.data_type).reshape(step["shape"])
    return values[None] if batched else values


def _values(step: dict[str, Any], data_type: str) -> Array:
    """Return all elements of a step's tensor, flat."""
    if data_type == BYTES:
        return numpy.array(step["content"], dtype=str)
    raw = base64.b64decode(step["content"]["b64"])
    return numpy.frombuffer(raw, dtype=numpy_type(data_type).newbyteorder("<"))


def _invalid(message: str) -> StageError:
    return StageError(Reason.INVALID_SPEC, f"spec.performance.inputShapes: {message}")
