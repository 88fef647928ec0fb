"""A model that Python steps ask by themselves, as a server answers them: outside Triton, by its own framework in fp32.

What a server says of a request is an error in the response, never an exception: the step's code decides what to do.
"""

from dataclasses import dataclass, field

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import MOST_ASKED, Step
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.load import server_tensors
from triton_converters.load.framework import Framework
from triton_converters.load.graph_inputs import DeclaresInputs, GraphInput
from triton_converters.model_config import data_types
from triton_converters.python_backend.messages import InferenceRequest, InferenceResponse, TritonError, refused
from triton_converters.python_backend.tensors import Tensor

FIRST = 2
"""Different requests that are kept although nothing else differs: enough to trace, and as many as of a step. Up to
MOST_ASKED, another one is kept if a size or a type differs that never did before, or if it is of one sample that was
run alone for that."""
MOST_UNCLEAR = 4
"""Batches of which samples may be run alone: each sample is one more request to the whole ensemble."""
UNKNOWN = range(0)
"""The numbers of samples that nobody knows."""
TYPE, RANK = -2, -1
"""In place of an axis: the tensor's type, and the number of its dimensions."""


@dataclass(frozen=True)
class KeptRequest:
    """The inputs and outputs of one request."""

    inputs: Arrays
    outputs: Arrays
    """All outputs of the framework, whether they were asked for or not."""
    samples: range
    """The numbers of the samples, from 0, that the ensemble was given as the request was made, or UNKNOWN."""


@dataclass
class CalledModel:
    """A model that steps call, with the requests that differ."""

    step: Step
    model: Framework
    kept: list[KeptRequest] = field(default_factory=list)
    samples: range = UNKNOWN
    """The numbers of the samples that the ensemble is given now."""
    is_alone: bool = False
    """Whether these are one sample of ``unclear``, so that every request is kept."""
    is_reversed: bool = False
    """Whether outputs are answered in the reverse of their order, which no code may rely on: servers differ in it."""
    unclear: list[range] = field(default_factory=list)
    """Samples that were given together, and of which a request has other rows than one for each."""
    _alike: int = 0
    """The kept requests in which nothing varied."""
    _varied: set[tuple[str, str, int]] = field(default_factory=set)
    """What was seen to vary: the side, the tensor, and the axis, TYPE or RANK."""

    @property
    def halves(self) -> bool:
        """Whether the model's inputs and outputs may be float16."""
        return SOURCE_FORMATS[self.step.code.format].halves

    def answer(self, request: InferenceRequest) -> InferenceResponse:
        """Return the response of a server to a request, which the step made, and keep what went through the model.

        Raises TritonModelException for what no server answers.
        """
        name = self.step.model
        try:
            inputs = self._inputs(request)
            outputs = self.model(inputs)
            self._keep(inputs, outputs)
            wanted = request.requested_output_names() or set(self.model.outputs)
            names = [each for each in self.model.outputs if each in wanted]
            names = names[::-1] if self.is_reversed else names
            tensors = [
                Tensor(each, server_tensors.answered(self.step, _sent(outputs[each], each, self.halves)))
                for each in names
            ]
        except ValueError as error:
            return InferenceResponse(error=TritonError(f"model {name}: {error}"))
        except StageError as error:
            return InferenceResponse(error=TritonError(f"model {name}: {error.message}"))
        return InferenceResponse(tensors)

    def _inputs(self, request: InferenceRequest) -> dict[str, Array]:
        """Return the request's arrays in the model's order; raises ValueError for what a server refuses."""
        names = [each.name() for each in request.inputs()]
        if sorted(names) != sorted(self.model.inputs):
            given, own = (", ".join(sorted(each)) or "none" for each in (names, self.model.inputs))
            raise ValueError(f"the request has the inputs {given}, but the model takes {own}")
        if unknown := sorted(request.requested_output_names() - set(self.model.outputs)):
            raise ValueError(f"it has no output {unknown[0]}; it has: {', '.join(self.model.outputs)}")
        arrays = {each.name(): _received(each.as_numpy(), each.name(), self.halves) for each in request.inputs()}
        self._check_rows(arrays)
        arrays = server_tensors.received(self.step, self.model, arrays)
        known = self.model.declared if isinstance(self.model, DeclaresInputs) else ()
        for each in known:
            _check_declared(each, arrays[each.name])
        return {name: arrays[name] for name in self.model.inputs}

    def _check_rows(self, arrays: Arrays) -> None:
        largest = self.step.code.max_batch_size
        if not largest:
            return
        rows = {array.shape[:1] for array in arrays.values()}
        if len(rows) != 1 or () in rows:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
            raise ValueError(f"the first dimension of every input is the batch, and has one size, but here: {shapes}")
        size = rows.pop()[0]
        if not size:
            never = "to which Triton's ONNX Runtime backend never answers: ask only if there are rows"
            raise refused(f"it asks model {self.step.model} for 0 rows, {never}")
        if size > largest:
            advice = "ask in parts, or set config.maxBatchSize of the model"
            raise ValueError(f"the request has {size} rows, but the largest batch has {largest}: {advice}")
        # config.pbtxt cannot declare fewer dimensions, and a server compares their number with the request's.
        if bare := [name for name, array in arrays.items() if array.ndim == 1]:
            raise ValueError(f"input {bare[0]} is [{size}], but a server takes [{size}, 1]: add a last dimension of 1")

    def _keep(self, inputs: Arrays, outputs: Arrays) -> None:
        if len(self.kept) == MOST_ASKED:
            return
        rows = len(next(iter(inputs.values()))) if self.step.code.max_batch_size else 1
        if rows != len(self.samples) > 1 and self.samples not in self.unclear and len(self.unclear) < MOST_UNCLEAR:
            self.unclear.append(self.samples)
        # The reference runs some samples more than once.
        if any(_is_same(each.inputs, inputs) for each in self.kept):
            return
        varied = self._differing(inputs, outputs) - self._varied if self.kept else set()
        if self._alike < FIRST or varied or self.is_alone:
            # The arrays are the step's, which may write into them.
            mine, theirs = ({name: numpy.array(array) for name, array in side.items()} for side in (inputs, outputs))
            self.kept.append(KeptRequest(mine, theirs, self.samples))
            self._varied |= varied
            self._alike += not varied

    def _differing(self, inputs: Arrays, outputs: Arrays) -> set[tuple[str, str, int]]:
        """Return in what a request is not like the first one."""
        first = self.kept[0]
        found = set()
        for side, now, before in (("input", inputs, first.inputs), ("output", outputs, first.outputs)):
            for name, array in now.items():
                shape = before[name].shape
                if data_types.triton_type(before[name].dtype) != data_types.triton_type(array.dtype):
                    found.add((side, name, TYPE))
                if len(shape) != array.ndim:
                    found.add((side, name, RANK))
                    continue
                pairs = zip(array.shape, shape, strict=True)
                found |= {(side, name, axis) for axis, (size, was) in enumerate(pairs) if size != was}
        return found


def _is_same(one: Arrays, other: Arrays) -> bool:
    return all(one[name].dtype == array.dtype and numpy.array_equal(one[name], array) for name, array in other.items())


def _received(array: Array, name: str, halves: bool) -> Array:
    """Return an input as a framework gets it: its own copy, with strings as text; raises ValueError."""
    if array.dtype.kind in "OS":
        items = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel().tolist()]
        return data_types.strings(data_types.objects(items, array.shape))
    if not data_types.is_served(array.dtype, halves):
        raise ValueError(f"input {name} is {array.dtype}, which is not served: cast it to float32")
    return numpy.array(array)


def _sent(array: Array, name: str, halves: bool) -> Array:
    """Return an output as a step gets it, with text as bytes; raises ValueError."""
    if not data_types.is_served(array.dtype, halves):
        raise ValueError(f"output {name} is {array.dtype}, which is not served: cast it to float32 in the model")
    return data_types.as_bytes(array) if array.dtype.kind in data_types.STRINGS else array


def _check_declared(known: GraphInput, array: Array) -> None:
    """Raise ValueError for another type or shape than the model's graph declares."""
    kind = "str" if array.dtype.kind in data_types.STRINGS else array.dtype.name
    fits = len(known.dims) == array.ndim and all(
        isinstance(size, str) or size == has for size, has in zip(known.dims, array.shape, strict=True)
    )
    if kind != known.type or not fits:
        wanted = ", ".join(map(str, known.dims))
        raise ValueError(f"input {known.name} is {kind}{list(array.shape)}, but the model takes {known.type}[{wanted}]")
