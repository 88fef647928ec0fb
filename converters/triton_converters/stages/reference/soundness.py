"""What a reference must be worth. Pure NumPy.

Its outputs are numbers, different between samples, equal when computed again, and independent of the other samples of a
batch. An infinity may be right, such as that of a masked class or of log(0): then a candidate must have it in the same
places.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.gates import exact
from triton_converters.gates.agreement import beyond, common
from triton_converters.gates.exact import Part
from triton_converters.gates.scale import SMALLEST, widened
from triton_converters.model_config.data_types import alike, is_served

AGREEMENT = 1e-4
"""Largest difference between two runs of the framework, as a fraction of the output's largest magnitude, or of what it
usually is in a sample.

Kernels for another batch size add in another order, which changes about 1e-6; dropout or batch statistics change more
than a hundredth. The fp32 gate's default tolerance is also 1e-4.
"""
HALF_AGREEMENT = 1e-2
"""Largest such difference of a model that computes in fp16, whose last bit is a thousandth."""
_MEMORY = re.compile(
    r"out of memory|MemoryError|\bOOM\b|ResourceExhausted|bad_alloc|ALLOC_FAILED|allocate\b.* memory", re.IGNORECASE
)
"""Matches what frameworks raise where there is no memory left."""
NO_SIZES: Mapping[str, float] = MappingProxyType({})


def unbatched(message: str) -> StageError:
    """Return the error of a model whose samples must not share a batch; ``message``: what showed it."""
    advice = "set models[].config.maxBatchSize to 0: the first dimension is then a part of each request"
    return StageError(Reason.BATCHING_UNSUPPORTED, f"{message}; {advice}")


def mixes(operator: str) -> str:
    """Return why samples must not share a batch, and what to do; ``operator``: that of the model's graph, in words."""
    return f"{operator} scales by the whole batch: quantize statically, or give the fp32 file and set precision int8"


def no_batch(error: StageError, size: int) -> StageError:
    """Return the error of a model that answers a single sample, but no batch of this size; ``error``: how that ended.

    Values that are not finite, and memory that a batch lacks, say nothing of batches.
    """
    if error.reason is Reason.REFERENCE_NOT_FINITE:
        return error
    message = f"a single sample works, but a batch of {size} fails: {error.message}"
    if _MEMORY.search(error.message):
        advice = f"set models[].config.maxBatchSize to less than {size}, or let the Job have more memory"
        return StageError(error.reason, f"{message}; {advice}")
    return unbatched(message)


def check_outputs(batch: Batch, batched: bool, halves: bool) -> None:
    """Check that outputs have a type that can be served and the batch's size, hold no NaN, and are not all infinite.

    ``halves``: whether one may be float16. Raises StageError: FrameworkFailed, BatchingUnsupported (another size),
    ReferenceNotFinite.
    """
    check_types(batch.outputs, halves)
    for name, array in batch.outputs.items():
        if batched and (array.ndim == 0 or len(array) != len(batch.ids)):
            message = f"output {name} has shape {list(array.shape)} for {len(batch.ids)} samples"
            raise unbatched(f"{message}, so its first dimension is not the batch")
        if array.dtype.kind != "f" or not array.size:
            continue
        broken, infinite = (int(numpy.count_nonzero(each(array))) for each in (numpy.isnan, numpy.isinf))
        if broken or infinite == array.size:
            what = f"{broken} of {array.size} elements of output {name} are NaN"
            rows = numpy.isnan(array).reshape(len(array) if batched else 1, -1).any(axis=1)
            if batched and not rows.all():
                what += f", first for the sample with the id {batch.ids[rows.argmax()]!s:.60},"
            if not broken:
                what = f"all {array.size} elements of output {name} are infinite"
            raise StageError(Reason.REFERENCE_NOT_FINITE, f"{what} in fp32, before any conversion")


def has_infinities(outputs: Arrays) -> bool:
    """Whether a floating point output holds an infinity."""
    return any(array.dtype.kind == "f" and bool(numpy.isinf(array).any()) for array in outputs.values())


def check_types(outputs: Arrays, halves: bool) -> None:
    """Check that outputs have a type that can be served. Raises StageError(FrameworkFailed)."""
    for name, array in outputs.items():
        if not is_served(array.dtype, halves):
            where = "which only ONNX graphs and Python steps may have there: " if array.dtype == numpy.float16 else ""
            raise _failed(f"output {name} is {array.dtype}, {where}cast it to float32 in the model")


def check_reproducible(again: Arrays, batch: Batch) -> None:
    """Check that the same batch, run ``again``, gave the same outputs.

    Raises StageError(ReferenceNotReproducible) if an output differs.
    """
    worst = disagreement(again, batch.outputs)
    if worst is not None:
        message = (
            "the first batch gives different outputs when it is run twice"
            f" ({worst}); look for dropout or other randomness"
        )
        raise StageError(Reason.REFERENCE_NOT_REPRODUCIBLE, message)


def check_alone(answers: Sequence[Arrays], batch: Batch) -> None:
    """Check that a sample alone gave what it gives in its batch: requests of different clients share batches.

    ``answers``: for the first samples, one by one; none without a batch dimension.
    """
    usual = usual_sizes(batch.outputs) if answers else NO_SIZES
    for index, alone in enumerate(answers):
        rows = {name: array[index : index + 1] for name, array in batch.outputs.items()}
        _compare_batching(alone, rows, index, len(batch.ids), usual)


def check_joined(joined: Arrays, first: Batch, second: Batch) -> None:
    """Check that two samples in one batch gave what they give alone."""
    check_outputs(Batch(numpy.arange(2), {}, {}, joined), True, halves=True)
    usual = usual_sizes(joined)
    for index, batch in enumerate((first, second)):
        rows = {name: array[index : index + 1] for name, array in joined.items()}
        _compare_batching(rows, batch.outputs, index, 2, usual)


def usual_sizes(outputs: Mapping[str, Sequence[Array] | Array]) -> dict[str, float]:
    """Return the largest magnitude of a sample, the median of a batch's: one number alone may be near 0 by chance."""
    return {
        name: float(
            numpy.median([numpy.max(numpy.abs(sample[numpy.isfinite(sample)]), initial=0.0) for sample in samples])
        )
        for name, samples in outputs.items()
        if len(samples) and samples[0].dtype.kind == "f"
    }


def _compare_batching(one: Arrays, other: Arrays, index: int, size: int, usual: Mapping[str, float]) -> None:
    worst = disagreement(one, other, usual)
    if worst is not None:
        message = f"sample {index} gives other outputs alone than in a batch of {size} ({worst})"
        why = "a layer uses statistics of the batch or mixes its samples, or the first dimension counts no samples"
        raise unbatched(f"{message}: {why}, but the server batches the requests of all clients")


def disagreement(one: Arrays, other: Arrays, usual: Mapping[str, float] = NO_SIZES) -> str | None:
    """Return in words which output differs; None if all agree: floats within AGREEMENT, others but for near ties.

    Zeros that only one side has are padding: a batch is as long as its longest sample. ``usual``: the least that an
    output is taken to be large, by name.
    """
    for name, whole in other.items():
        shapes = f"{name}: shape {list(one[name].shape)} and {list(whole.shape)}"
        if one[name].ndim != whole.ndim:
            return shapes
        mine, theirs = alike(one[name], whole)
        actual, expected = common(widened(mine), widened(theirs))
        if beyond(mine, actual) or beyond(theirs, expected):
            return f"{shapes}, and the part that only one of them has is not all zeros"
        if expected.dtype.kind == "f":
            difference = _largest_difference(actual, expected)
            finite = numpy.abs(expected[numpy.isfinite(expected)])
            scale = float(numpy.max(finite, initial=usual.get(name, 0.0)))
            is_half = whole.dtype == numpy.float16 or (_is_half(actual) and _is_half(expected))
            agreement = HALF_AGREEMENT if is_half else AGREEMENT
            if not difference <= max(SMALLEST, agreement * scale):
                return f"{name}: largest difference {difference:.3g} in values of up to {scale:.3g}"
        elif differing := _differing(actual, expected):
            return f"{name}: {differing} of {expected.size} elements differ"
    return None


def _is_half(array: Array) -> bool:
    """Whether floating point numbers have no digit that fp16 lacks, and not all are whole, as a model in fp16 gives."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        halves = array.astype(numpy.float16).astype(array.dtype)
        return numpy.array_equal(halves, array, equal_nan=True) and bool(numpy.any(array != numpy.round(array)))


def _differing(one: Array, other: Array) -> int:
    """Return how many elements differ, [samples, ...]; 0 if they are no more than near ties, which rounding turns."""
    differs = exact.distances(other, one) > 0
    counts = exact.counted(other, one) if other.ndim else numpy.ones((), dtype=bool)
    few = Part(int(numpy.count_nonzero(differs)), int(numpy.count_nonzero(counts)))
    return 0 if exact.RULES["fp32"].allows(few, Part()) else few.differing


def _largest_difference(one: Array, other: Array) -> float:
    """Return the largest difference; infinite where only one is, or where they are NaN or of different signs."""
    with numpy.errstate(invalid="ignore"):
        difference = numpy.where(one == other, 0.0, numpy.abs(one - other))
    return float(numpy.max(numpy.nan_to_num(difference, nan=numpy.inf, posinf=numpy.inf), initial=0.0))


class Variety:
    """Whether outputs differ between samples: agreement on a constant would prove nothing."""

    def __init__(self, batched: bool) -> None:
        self.batched = batched
        self.samples = 0
        self.first: Batch | None = None
        self.constant: dict[str, bool] = {}
        self.empty: dict[str, bool] = {}
        self._infinite: dict[str, None] = {}
        self.same_inputs = True

    def add(self, batch: Batch) -> None:
        """Compare every sample of one more batch with the very first sample, bit by bit."""
        if self.first is None:
            self.first = batch
            self.constant = dict.fromkeys(batch.outputs, True)
            self.empty = dict.fromkeys(batch.outputs, True)
        for name, array in batch.outputs.items():
            self.empty[name] = self.empty[name] and not array.size
            self.constant[name] = self.constant[name] and self._equal(self.first.outputs[name], array)
            if has_infinities({name: array}):
                self._infinite[name] = None
        self.same_inputs = self.same_inputs and all(
            self._equal(self.first.inputs[name], array) for name, array in batch.inputs.items()
        )
        self.samples += batch.samples(self.batched)

    def _equal(self, first: Array, array: Array) -> bool:
        first, array = alike(first, array)
        if not self.batched:
            return numpy.array_equal(first, array)
        return first.shape[1:] == array.shape[1:] and bool(numpy.all(first[:1] == array))

    def check(self) -> None:
        """Raise StageError(ReferenceConstant) if no output varies.

        One alone may be constant by design, such as a detector's anchors.
        """
        if all(self.constant.values()) and (complaint := self.complaint()):
            raise StageError(Reason.REFERENCE_CONSTANT, complaint)

    def complaint(self) -> str:
        """Return in words that a floating point output is constant, or that every output is; empty: neither.

        A class number may be the same for a few samples, but a score should differ at least in its last bit. What was
        always empty comes last.
        """
        if self.first is None or self.samples < 2:
            return ""
        constant = sorted((name for name, same in self.constant.items() if same), key=self.empty.__getitem__)
        floating = [name for name in constant if self.first.outputs[name].dtype.kind == "f"]
        if floating or len(constant) == len(self.constant):
            name = (floating or constant)[0]
            if self.empty[name]:
                return f"output {name} is empty for all {self.samples} samples (the model finds nothing in them)"
            why = "all inputs are the same" if self.same_inputs else "check that the model uses its input"
            return f"output {name} is the same for all {self.samples} samples ({why})"
        return ""

    @property
    def infinite(self) -> tuple[str, ...]:
        """The outputs that hold an infinity."""
        return tuple(self._infinite)

    @property
    def nothing(self) -> tuple[str, ...]:
        """The outputs that were empty for every sample."""
        return tuple(name for name, empty in self.empty.items() if empty)


def _failed(message: str) -> StageError:
    return StageError(Reason.FRAMEWORK_FAILED, message)
