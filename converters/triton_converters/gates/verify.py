"""The numerical gate: serve the reference's samples and compare the answers with the framework's outputs.

The reference is read twice: first for the outputs' scales. One request is in flight at a time. Every sample is sent at
least once; requests hold one sample, a middle number, and the maximum.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates.agreement import EQUAL_FRACTION, ERROR_SHARE, Agreement, compare, describe
from triton_converters.gates.samples import Sample, cut, join, regroup, request_sizes
from triton_converters.gates.scale import Scale, measure
from triton_converters.gates.variation import Variation
from triton_converters.model_config.data_types import wire_bytes
from triton_converters.model_config.model import served_dims


class Infer(Protocol):
    """One inference request: returns outputs by name for inputs by name."""

    def __call__(self, inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        """Raises StageError: InferenceFailed with the server's message, ServerCrashed or ServerUnreachable."""


@dataclass
class Served:
    """The server's answers over the whole reference."""

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

    @property
    def max_absolute_error(self) -> float:
        """The largest absolute error of all floating point outputs."""
        return max((each.max_absolute_error for each in self.agreements.values()), default=0.0)

    def include(self, other: "Served") -> None:
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


def check_signature(declared: Signature, expected: Signature, max_batch_size: int) -> None:
    """Compare the server's signature with the reference's; the order of tensors does not matter.

    Raises StageError(SignatureMismatch), which names the first difference.
    """
    if declared.max_batch_size != max_batch_size:
        raise _mismatch(f"max_batch_size is {declared.max_batch_size}, not {max_batch_size}")
    for kind, got, wanted in (
        ("input", declared.inputs, expected.inputs),
        ("output", declared.outputs, expected.outputs),
    ):
        by_name = {tensor.name: tensor for tensor in got}
        if sorted(by_name) != sorted(tensor.name for tensor in wanted):
            names = [tensor.name for tensor in wanted]
            raise _mismatch(f"the {kind}s are {', '.join(sorted(by_name))}, not {', '.join(sorted(names))}")
        for tensor in wanted:
            found = by_name[tensor.name]
            shape = served_dims(tensor.dims)
            if found.data_type != tensor.data_type or not _serves(found.dims, shape, kind):
                served = f"{found.data_type}{list(found.dims)}"
                raise _mismatch(f"{kind} {tensor.name} is {served}, not {tensor.data_type}{list(shape)}")


def _serves(found: tuple[int, ...], wanted: tuple[int, ...], kind: str) -> bool:
    """Whether the dimensions agree; an output's may be open if the served file leaves it open."""
    return len(found) == len(wanted) and all(
        size == want or (kind == "output" and size == -1) for size, want in zip(found, wanted, strict=True)
    )


def scales_of(reference: Iterable[Batch], batched: bool, tolerance: Tolerance, precision: str) -> dict[str, Scale]:
    """Return the outputs' scales that a precision's default tolerance follows; none for another tolerance.

    ``reference``: all of it, whichever samples are then served. ``precision``: empty: the default of any.
    """
    return measure(reference, batched) if tolerance.is_default(precision) else {}


def serve(
    infer: Infer,
    batches: Iterable[Batch],
    signature: Signature,
    tolerance: Tolerance,
    keep_outputs: bool = False,
    precision: str = "",
    scales: Mapping[str, Scale] | None = None,
) -> Served:
    """Send every sample and count; raises StageError: what ``infer`` raises, SignatureMismatch.

    ``keep_outputs``: keep the outputs for metrics, which need the whole set in memory. ``scales``: those of the whole
    reference; None: ``batches`` are all of it, and gone through twice; an iterator is kept in memory. ``precision``:
    whose default tolerance follows the scale; empty: any.
    """
    batched, names = signature.max_batch_size > 0, tuple(tensor.name for tensor in signature.outputs)
    if scales is None:
        batches = list(batches) if isinstance(batches, Iterator) else batches
        scales = scales_of(batches, batched, tolerance, precision)
    served = Served({}, variations={name: Variation() for name in names})
    kept: dict[int, Arrays] = {}
    for group in regroup(cut(batches, batched), request_sizes(signature.max_batch_size)):
        answer = _ask(infer, group, signature)
        for tensor in signature.outputs:
            expected = _expected(tensor, group, answer[tensor.name], batched)
            agreement = _compare(tensor, group, expected, answer[tensor.name], tolerance, scales.get(tensor.name))
            served.variations[tensor.name].add(expected, answer[tensor.name])
            known = served.agreements.get(tensor.name)
            served.agreements[tensor.name] = agreement if known is None else known + agreement
            largest = max(wire_bytes(sample) for sample in answer[tensor.name])
            served.output_bytes[tensor.name] = max(served.output_bytes.get(tensor.name, 0), largest)
        for index, sample in enumerate(group):
            if sample.number not in kept:
                kept[sample.number] = {name: answer[name][index] for name in names} if keep_outputs else {}
        served.requests += 1
        served.sizes.add(len(group))
    served.samples = len(kept)
    served.outputs = [kept[number] for number in sorted(kept)] if keep_outputs else []
    return served


def check(served: Served, precision: str, tolerance: Tolerance) -> None:
    """Raise StageError if the outputs do not agree, if one is constant that should not be, or if there is no sample.

    OutputsNotFinite comes before OutputsDiffer; the message describes the worst output and names the others. Only a
    tolerance that can help is advised.
    """
    required = EQUAL_FRACTION[precision]
    held = {name: each.holds(required, ERROR_SHARE[precision]) for name, each in served.agreements.items()}
    # All that varies of an integer output may be within the share that need not be equal.
    still = {
        name: words
        for name, each in served.variations.items()
        if (words := each.complaint(precision)) and (served.agreements[name].is_floating or not held[name])
    }
    failed = [each for name, each in served.agreements.items() if name in still or not held[name]]
    if not served.agreements or not served.requests:
        raise StageError(Reason.OUTPUTS_DIFFER, "nothing was compared: the reference holds no sample")
    if not failed:
        return
    infinite = [each for each in failed if each.not_finite]
    lost = [each for each in failed if each.output in still]
    worst = max(infinite or lost or failed, key=lambda each: each.outside / max(1, each.elements))
    words = describe(worst, tolerance, required)
    message = words if infinite or not lost else f"output {worst.output} {still[worst.output]}"
    others = [each.output for each in failed if each is not worst]
    if others:
        message += f"; these outputs do not agree either: {', '.join(others)}"
    if infinite:
        advice = " (a float16 holds at most 65504)" if precision == "fp16" else ""
        raise StageError(Reason.OUTPUTS_NOT_FINITE, f"{message}{advice}")
    if all(each.is_floating and not each.other_lengths and each.output not in still for each in failed):
        message += _advice(served, precision, tolerance)
    raise StageError(Reason.OUTPUTS_DIFFER, message)


def _advice(served: Served, precision: str, tolerance: Tolerance) -> str:
    """Return the tolerance by which all floating point outputs agree; empty if there is none."""
    needed = max(each.needed for each in served.agreements.values())
    if not math.isfinite(needed):
        return ""
    wider = replace(tolerance, absolute=_rounded_up(needed))
    if wider.is_default(precision):
        wider = replace(wider, absolute=_rounded_up(1.01 * wider.absolute))
    words = f"[{{precision: {precision}, absolute: {wider.absolute:g}, relative: {wider.relative:g}}}]"
    advice = f". If this error is acceptable for {precision}, set spec.conversion.tolerances to {words}"
    if not tolerance.is_default(precision):
        return advice
    return f"{advice}: it is not scaled, and ends the rule for the size of the whole output's errors"


def _rounded_up(value: float) -> float:
    """Return a number of two digits that is no less."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value * (1 + 1e-9) / step) * step:.3g}")


def _ask(infer: Infer, group: tuple[Sample, ...], signature: Signature) -> dict[str, Array]:
    """Send these samples in one request; outputs are [len(group), ...] even without a batch dimension."""
    batched = signature.max_batch_size > 0
    inputs = {}
    for tensor in signature.inputs:
        array = join([sample.inputs[tensor.name] for sample in group], batched)
        inputs[tensor.name] = array if tensor.dims else array.reshape(array.shape + served_dims(()))
    answer = infer(inputs, tuple(tensor.name for tensor in signature.outputs))
    for tensor in signature.outputs:
        array = answer[tensor.name]
        if not tensor.dims and array.shape[-1:] == served_dims(()):
            array = array.reshape(array.shape[:-1])
        answer[tensor.name] = array if batched else array[None]
    return answer


def _expected(tensor: Tensor, group: tuple[Sample, ...], answer: Array, batched: bool) -> Array:
    """Return the framework's output for these samples, [len(group), ...], if the answer has its declared sizes."""
    expected = join([sample.outputs[tensor.name] for sample in group], batched)
    expected = expected if batched else expected[None]
    static = [size for size in enumerate(tensor.dims, start=1) if size[1] >= 0]
    if answer.ndim == expected.ndim and any(answer.shape[axis] != size for axis, size in static):
        raise _mismatch(
            f"output {tensor.name} has shape {list(answer.shape)}, but its declared dimensions are {list(tensor.dims)}"
        )
    return expected


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
        raise _mismatch(str(error)) from error


def _mismatch(message: str) -> StageError:
    return StageError(
        Reason.SIGNATURE_MISMATCH, f"{message}; compare the model's config.pbtxt with the file's own signature"
    )
