"""perf_analyzer's ``--input-data`` file, made of real samples.

The format is that of perf_analyzer 2.60 (docs/input_data.md): one step for each sample, with each input as base64 of
its raw little-endian bytes and its shape without the batch dimension. Text stays as it is. perf_analyzer would end it
at its first zero, so text with a zero, and bytes that are no text, are in base64 as in a request.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.results import Tensor
from triton_converters.measuring.settings import SETTINGS
from triton_converters.model_config.data_types import wire, wire_bytes
from triton_converters.model_config.shapes import requested

FILES_OF_SIZES = "perf-*.json"
"""The files of a model without a batch dimension, one for each size of its requests."""


def file_name(max_batch_size: int, batch_size: int) -> str:
    """Return the file's name below the reference; with a batch dimension perf_analyzer batches samples itself."""
    return "perf.json" if max_batch_size else f"perf-{batch_size}.json"


class PerfInput:
    """Collects samples of one shape, since perf_analyzer refuses to batch different shapes.

    If there are others, ``load_input`` makes another file, of the reference's batches.
    """

    def __init__(self, batched: bool, declared: Sequence[Tensor] = (), limit_bytes: int = SETTINGS.input_bytes) -> None:
        """``declared``: the inputs whose shape in requests is declared."""
        self.batched = batched
        self.declared = {each.name: each for each in declared}
        self.left = limit_bytes
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.steps: list[dict[str, Any]] = []

    def add(self, inputs: Arrays) -> None:
        """Add the samples of a batch that fit; the very first one always does."""
        for sample in samples_of(inputs, self.batched):
            shapes = {name: array.shape for name, array in sample.items()}
            self.shapes = self.shapes or shapes
            size = encoded_bytes(sample)
            if shapes != self.shapes or (self.steps and size > self.left):
                continue
            self.steps.append(step(sample, self.declared))
            self.left -= size

    def to_json(self) -> str:
        """Return the file's content."""
        return to_json(self.steps)


def samples_of(inputs: Arrays, batched: bool) -> Iterator[Arrays]:
    """Yield the samples of a batch; without a batch dimension it is one request."""
    for index in range(len(next(iter(inputs.values()))) if batched else 1):
        yield {name: array[index] if batched else array for name, array in inputs.items()}


def encoded_bytes(sample: Arrays) -> int:
    """Return how many bytes the values of a sample take in the file."""
    return sum(4 * ((wire_bytes(array) + 2) // 3) for array in sample.values())


def step(sample: Arrays, declared: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return a sample as a step of the file; ``declared``: the inputs whose shape in requests is declared."""
    return {name: content(array, _shape(declared.get(name), array)) for name, array in sample.items()}


def to_json(steps: Sequence[dict[str, Any]]) -> str:
    """Return the file's content."""
    return json.dumps({"data": list(steps)}, separators=(",", ":"))


def _shape(tensor: Tensor | None, array: Array) -> tuple[int, ...]:
    return requested(tensor, array.shape) if tensor else array.shape


def content(array: Array, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return one tensor of a step, in the shape of requests; one without dimensions has one there."""
    is_text = array.dtype.kind == "U" and not any("\0" in word for word in array.ravel().tolist())
    return {
        "content": array.flatten().tolist() if is_text else {"b64": base64.b64encode(wire(array)).decode()},
        "shape": list(shape or (1,)),
    }
