"""The answers of a server to the reference's samples, compared with the framework's outputs.

The reference is read twice: first for the outputs' scales. One request is in flight at a time. Every sample is sent at
least once; requests hold one sample, a middle number, and the maximum.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates.agreement import Agreement, common, compare
from triton_converters.gates.exact import distances
from triton_converters.gates.rare import Rare
from triton_converters.gates.samples import Sample, cut, join, regroup, request_sizes
from triton_converters.gates.scale import Scale, measure
from triton_converters.gates.signature import mismatch
from triton_converters.gates.variation import Variation
from triton_converters.model_config import shapes
from triton_converters.model_config.data_types import alike, wire_bytes
from triton_converters.model_config.shapes import Shape


class Infer(Protocol):
    """One inference request: returns outputs by name for inputs by name."""

    def __call__(self, inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        """Raises StageError: InferenceFailed with the server's message, ServerCrashed or ServerUnreachable."""


@dataclass
class Answers:
    """What a server answered to some samples, in counts."""

    agreements: dict[str, Agreement]
    """Agreements by output, in the signature's order."""
    samples: int = 0
    """Number of different samples; without a batch dimension, of different requests."""
    requests: int = 0
    sizes: set[int] = field(default_factory=set)
    """The request sizes that were sent, in samples."""
    output_bytes: dict[str, int] = field(default_factory=dict)
    """Largest output of a sample in bytes, by name."""
    outputs: list[Arrays] = field(default_factory=list)
    """The first answer for each sample, in the reference's order; empty unless kept."""
    variations: dict[str, Variation] = field(default_factory=dict)
    """How each output varies over the samples of the set, by name."""
    rare: dict[str, Rare] = field(default_factory=dict)
    """The values of each output that is no floating point, over the samples of the set, by name."""

    @property
    def max_absolute_error(self) -> float:
        """The largest absolute error of all floating point outputs."""
        return max((each.max_absolute_error for each in self.agreements.values()), default=0.0)

    @property
    def signal_to_noise(self) -> float | None:
        """The smallest signal-to-noise ratio of all floating point outputs, in dB; None: no output is one."""
        return min((each.signal_to_noise for each in self.agreements.values() if each.is_floating), default=None)

    def add(self, output: str, agreement: Agreement, answered: Array) -> None:
        """Add what was answered for one output of a request, [samples, ...]."""
        known = self.agreements.get(output)
        largest = max(wire_bytes(sample) for sample in answered)
        self.agreements[output] = agreement if known is None else known + agreement
        self.output_bytes[output] = max(self.output_bytes.get(output, 0), largest)

    def include(self, other: "Answers") -> None:
        """Add the agreement of other requests, whose samples do not belong to the set."""
        for name, agreement in other.agreements.items():
            self.agreements[name] = self.agreements[name] + agreement
            self.output_bytes[name] = max(self.output_bytes[name], other.output_bytes[name])
        self.requests += other.requests

    def describe(self) -> str:
        """Return in words what was compared."""
        sizes = ", ".join(str(size) for size in sorted(self.sizes))
        words = (
            f"{self.samples} samples agree in {self.requests} requests of {sizes} samples;"
            f" largest absolute error {self.max_absolute_error:.3g}"
        )
        if empty := [name for name, variation in self.variations.items() if variation.is_empty]:
            words += f"; nothing was found, and so nothing compared, in {', '.join(empty)}"
        return words


def scales_of(reference: Iterable[Batch], batched: bool, tolerance: Tolerance, precision: str) -> dict[str, Scale]:
    """Return the outputs' scales that a precision's default tolerance follows; none for another tolerance.

    ``reference``: all of it, whichever samples are then served. ``precision``: empty: the default of any.
    """
    return measure(reference, batched) if tolerance.is_default(precision) else {}


def collect(
    infer: Infer,
    batches: Iterable[Batch],
    signature: Signature,
    tolerance: Tolerance,
    scales: Mapping[str, Scale],
    keep_outputs: bool = False,
) -> Answers:
    """Send every sample and count; raises StageError: what ``infer`` raises, SignatureMismatch.

    ``scales``: those of the whole reference, by output. ``keep_outputs``: keep the outputs for metrics, which need the
    whole set in memory.
    """
    batched = signature.max_batch_size > 0
    names = tuple(tensor.name for tensor in signature.outputs)
    answers = Answers({}, variations={name: Variation() for name in names})
    kept: dict[int, Arrays] = {}
    for group in regroup(cut(batches, batched), request_sizes(signature.max_batch_size)):
        try:
            answer = _ask(infer, group, signature)
        except StageError as error:
            if error.reason is not Reason.INFERENCE_FAILED or not answers.requests:
                raise
            held = ", ".join(f"{each.name:.60}" for each in group[:4]) + ", ..." * (len(group) > 4)
            message = f"a request of {len(group)} samples ({held}) fails: {error.message}"
            raise StageError(error.reason, message, final=error.final) from error
        new = [index for index, sample in enumerate(group) if sample.number not in kept]
        for tensor in signature.outputs:
            expected = _expected(tensor, group, answer[tensor.name], batched)
            agreement = _compare(tensor, group, expected, answer[tensor.name], tolerance, scales.get(tensor.name))
            answers.add(tensor.name, agreement, answer[tensor.name])
            answers.variations[tensor.name].add(expected, answer[tensor.name])
            if new and expected.dtype.kind != "f":
                wanted = expected[new]
                got = answer[tensor.name][new]
                answers.rare.setdefault(tensor.name, Rare()).add(wanted, _differs(wanted, got, tolerance))
        for index, sample in enumerate(group):
            if sample.number not in kept:
                kept[sample.number] = {name: answer[name][index] for name in names} if keep_outputs else {}
        answers.requests += 1
        answers.sizes.add(len(group))
    answers.samples = len(kept)
    answers.outputs = [kept[number] for number in sorted(kept)] if keep_outputs else []
    return answers


def _ask(infer: Infer, group: tuple[Sample, ...], signature: Signature) -> dict[str, Array]:
    """Send these samples in one request; outputs are [len(group), ...] even without a batch dimension."""
    batched = signature.max_batch_size > 0
    inputs = {}
    for tensor in signature.inputs:
        array = join([sample.inputs[tensor.name] for sample in group], batched)
        inputs[tensor.name] = _reshaped(array, tensor, shapes.requested, batched)
    answer = infer(inputs, tuple(tensor.name for tensor in signature.outputs))
    for tensor in signature.outputs:
        array = _reshaped(answer[tensor.name], tensor, shapes.own, batched)
        answer[tensor.name] = array if batched else array[None]
    return answer


def _reshaped(array: Array, tensor: Tensor, shape: Callable[[Tensor, Shape], Shape], batched: bool) -> Array:
    """Return the array in another shape of its tensor, with the batch dimension that it has."""
    skipped = 1 if batched else 0
    return array.reshape(array.shape[:skipped] + shape(tensor, array.shape[skipped:]))


def _expected(tensor: Tensor, group: tuple[Sample, ...], answer: Array, batched: bool) -> Array:
    """Return the framework's output for these samples, [len(group), ...], if the answer has its declared sizes."""
    expected = join([sample.outputs[tensor.name] for sample in group], batched)
    expected = expected if batched else expected[None]
    static = [size for size in enumerate(tensor.dims, start=1) if size[1] >= 0]
    if answer.ndim == expected.ndim and any(answer.shape[axis] != size for axis, size in static):
        raise mismatch(
            f"output {tensor.name} has shape {list(answer.shape)}, but its declared dimensions are {list(tensor.dims)}"
        )
    return expected


def _differs(framework: Array, served: Array, tolerance: Tolerance) -> Array:
    """Return which of the framework's elements differ; those that it alone has do, but for padding."""
    framework, served = alike(framework, served)
    wanted, got = common(framework, served)
    steps = tolerance.integers.steps if framework.dtype.kind in "iu" else 0
    found: Array = framework != (b"" if framework.dtype.hasobject else framework.dtype.type())
    found[tuple(map(slice, wanted.shape))] = distances(wanted, got) > steps
    return found


def _compare(
    tensor: Tensor,
    group: tuple[Sample, ...],
    expected: Array,
    answer: Array,
    tolerance: Tolerance,
    scale: Scale | None,
) -> Agreement:
    try:
        return compare(tensor.name, expected, answer, [sample.name for sample in group], tolerance, scale)
    except ValueError as error:
        raise mismatch(str(error)) from error
