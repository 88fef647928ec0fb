"""Stage ``reference``: run the framework in fp32 once over the dataloader and store its inputs and outputs.

The gates later compare candidates with these outputs, so they must be sound: finite, different between samples, equal
when computed again, and independent of the other samples of a batch.
"""

import time
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch, write_batch
from triton_converters.claim_store.publish import publish_directory, temporary_directory
from triton_converters.claim_store.replay import has_result, published_source, read_result, write_result
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import ReferenceRequest
from triton_converters.contract.results import ReferenceResult, Signature
from triton_converters.gates.agreement import beyond, common
from triton_converters.load import framework
from triton_converters.load.ensemble import Ensemble
from triton_converters.load.framework import Framework
from triton_converters.measuring import other_sizes
from triton_converters.measuring.perf_input import PerfInput, file_name
from triton_converters.model_config.data_types import is_served
from triton_converters.stages.member_dump import declared, record_members
from triton_converters.user import dataloader
from triton_converters.user.signature import Observed

AGREEMENT = 1e-4
"""Largest difference between two runs of the framework, as a fraction of the output's largest magnitude.

Kernels for another batch size add in another order, which changes about 1e-6; dropout or batch statistics change more
than a hundredth. The fp32 gate's default tolerance is also 1e-4.
"""
SINGLES = 4
"""Number of samples of the first batch that are also run one by one."""


def run(request: ReferenceRequest) -> ReferenceResult:
    """Publish ``references/<key>/``.

    Raises StageError: what the model's loader and ``dataloader.batches`` raise, FrameworkFailed, ReferenceNotFinite,
    ReferenceNotReproducible, ReferenceConstant.
    """
    started = time.monotonic()
    source, target = published_source(request.source), layout.reference_directory(request.key)
    model = framework.load(source, request.model, request.model.format)
    with temporary_directory(target) as directory:
        signature, samples, batches = record(model, request, source, directory)
        if isinstance(model, Ensemble):
            signature = declared(model.code, signature)
            record_members(model, directory, request.key)
        result = ReferenceResult(signature, samples, batches, round(time.monotonic() - started, 3))
        write_result(directory, "reference", request.key, result)
        if not publish_directory(directory, target, lambda path: has_result(path, "reference", request.key)):
            return read_result(target, "reference", request.key, ReferenceResult)
    return result


def record(model: Framework, request: ReferenceRequest, source: Path, directory: Path) -> tuple[Signature, int, int]:
    """Run and write every batch; returns the signature and the numbers of samples and batches."""
    batched = request.model.max_batch_size > 0
    observed = {name: Observed(name, batched) for name in (*model.inputs, *model.outputs)}
    perf_input, variety, samples, batches = PerfInput(batched), Variety(batched), 0, 0
    previous: Batch | None = None
    for batch in dataloader.batches(request, source, model.inputs):
        answered = Batch(batch.ids, batch.inputs, batch.labels, model(batch.inputs))
        _check_outputs(answered, batched)
        others: list[Arrays] = []
        if batches == 0:
            _check_reproducible(model, answered)
            others = _check_singles(model, answered, batched)
        elif batches == 1 and previous is not None and request.model.max_batch_size > 1:
            others = _check_joined(model, previous, answered)
        for arrays in (batch.inputs, answered.outputs, *others):
            for name, array in arrays.items():
                observed[name].add(array)
        variety.add(answered)
        perf_input.add(batch.inputs)
        write_batch(directory, batches, answered)
        samples, batches, previous = samples + (len(batch.ids) if batched else 1), batches + 1, answered
    for answered in other_sizes.record(model, request, source, directory):
        _check_outputs(answered, batched)
        for name, array in {**answered.inputs, **answered.outputs}.items():
            observed[name].add(array)
    variety.check()
    file = file_name(request.model.max_batch_size, dataloader.largest_batch_size(request))
    (directory / file).write_text(perf_input.to_json(), encoding="utf-8")
    return _signature(model, observed, request.model.max_batch_size), samples, batches


def _signature(model: Framework, observed: dict[str, Observed], max_batch_size: int) -> Signature:
    try:
        inputs = tuple(observed[name].tensor() for name in model.inputs)
        outputs = tuple(observed[name].tensor() for name in model.outputs)
    except ValueError as error:
        raise _failed(f"{error} between batches, but one signature is served") from error
    return Signature(inputs, outputs, max_batch_size)


def _check_outputs(batch: Batch, batched: bool) -> None:
    """Check that outputs have a type that can be served and the batch's size, and hold no NaN or infinity."""
    for name, array in batch.outputs.items():
        if not is_served(array.dtype):
            raise _failed(f"output {name} is {array.dtype}, but ioPrecision is fp32; return it with .float()")
        if batched and (array.ndim == 0 or len(array) != len(batch.ids)):
            message = f"output {name} has shape {list(array.shape)} for {len(batch.ids)} samples"
            raise _failed(f"{message}; its first dimension is not the batch: set maxBatchSize to 0 for such a model")
        broken = int(numpy.count_nonzero(~numpy.isfinite(array))) if array.dtype.kind == "f" else 0
        if broken:
            message = (
                f"{broken} of {array.size} elements of output {name} are NaN or infinite in fp32, before any conversion"
            )
            raise StageError(Reason.REFERENCE_NOT_FINITE, message)


def _check_reproducible(model: Framework, batch: Batch) -> None:
    """Check that the same batch, run again, gives the same outputs."""
    worst = disagreement(model(batch.inputs), batch.outputs)
    if worst is not None:
        message = (
            "the first batch gives different outputs when it is run twice"
            f" ({worst}); look for dropout or other randomness"
        )
        raise StageError(Reason.REFERENCE_NOT_REPRODUCIBLE, message)


def _check_singles(model: Framework, batch: Batch, batched: bool) -> list[Arrays]:
    """Check that a sample alone gives what it gives in its batch: requests of different clients share batches.

    Returns the outputs, whose lengths may depend on the batch.
    """
    if not batched or len(batch.ids) < 2:
        return []
    answers: list[Arrays] = []
    for index in range(min(SINGLES, len(batch.ids))):
        rows = slice(index, index + 1)
        try:
            alone = model({name: array[rows] for name, array in batch.inputs.items()})
        except StageError as error:
            raise StageError(
                error.reason, f"a batch of {len(batch.ids)} works, but a batch of 1 fails: {error.message}"
            ) from error
        _compare_batching(alone, {name: array[rows] for name, array in batch.outputs.items()}, index, len(batch.ids))
        answers.append(alone)
    return answers


def _check_joined(model: Framework, first: Batch, second: Batch) -> list[Arrays]:
    """If the dataloader yields single samples, check that two of them in one batch give what they give alone.

    Returns the outputs, whose lengths may depend on the batch.
    """
    alike = all(first.inputs[name].shape == second.inputs[name].shape for name in first.inputs)
    if len(first.ids) != 1 or not alike:
        return []
    joined = model({name: numpy.concatenate([first.inputs[name], second.inputs[name]]) for name in first.inputs})
    _check_outputs(Batch(numpy.arange(2), {}, {}, joined), batched=True)
    for index, batch in enumerate((first, second)):
        _compare_batching({name: array[index : index + 1] for name, array in joined.items()}, batch.outputs, index, 2)
    return [joined]


def _compare_batching(one: Arrays, other: Arrays, index: int, size: int) -> None:
    worst = disagreement(one, other)
    if worst is not None:
        message = (
            f"sample {index} gives other outputs alone than in a batch of {size} ({worst}); a layer uses statistics of"
            " the batch or mixes its samples, but the server batches the requests of all clients"
        )
        raise StageError(Reason.REFERENCE_NOT_REPRODUCIBLE, message)


def disagreement(one: Arrays, other: Arrays) -> str | None:
    """Return in words which output differs; None if all agree within AGREEMENT (integers: exactly).

    Zeros that only one side has are padding: a batch is as long as its longest sample.
    """
    for name, whole in other.items():
        shapes = f"{name}: shape {list(one[name].shape)} and {list(whole.shape)}"
        if one[name].ndim != whole.ndim:
            return shapes
        actual, expected = common(one[name], whole)
        if beyond(one[name], actual) or beyond(whole, expected):
            return f"{shapes}, and the part that only one of them has is not all zeros"
        if expected.dtype.kind == "f":
            difference = float(numpy.max(numpy.abs(actual - expected), initial=0.0))
            scale = float(numpy.max(numpy.abs(expected), initial=0.0))
            if not difference <= AGREEMENT * max(scale, 1e-6):
                return f"{name}: largest difference {difference:.3g}, largest value {scale:.3g}"
        elif not numpy.array_equal(actual, expected):
            return f"{name}: {numpy.count_nonzero(actual != expected)} of {expected.size} elements differ"
    return None


class Variety:
    """Whether outputs differ between samples: agreement on a constant would prove nothing."""

    def __init__(self, batched: bool) -> None:
        self.batched = batched
        self.samples = 0
        self.first: Batch | None = None
        self.constant: dict[str, bool] = {}
        self.same_inputs = True

    def add(self, batch: Batch) -> None:
        """Compare every sample of one more batch with the very first sample, bit by bit."""
        if self.first is None:
            self.first = batch
            self.constant = dict.fromkeys(batch.outputs, True)
        for name, array in batch.outputs.items():
            self.constant[name] = self.constant[name] and self._equal(self.first.outputs[name], array)
        self.same_inputs = self.same_inputs and all(
            self._equal(self.first.inputs[name], array) for name, array in batch.inputs.items()
        )
        self.samples += len(batch.ids) if self.batched else 1

    def _equal(self, first: Array, array: Array) -> bool:
        if not self.batched:
            return numpy.array_equal(first, array)
        return first.shape[1:] == array.shape[1:] and bool(numpy.all(first[:1] == array))

    def check(self) -> None:
        """Raise ReferenceConstant if a floating point output is constant, or if every output is.

        A class number may be the same for a few samples, but a score should differ at least in its last bit.
        """
        if self.first is None or self.samples < 2:
            return
        constant = [name for name, same in self.constant.items() if same]
        floating = [name for name in constant if self.first.outputs[name].dtype.kind == "f"]
        if floating or len(constant) == len(self.constant):
            why = "all inputs are the same" if self.same_inputs else "check that the model uses its input"
            message = f"output {(floating or constant)[0]} is the same for all {self.samples} samples ({why})"
            raise StageError(Reason.REFERENCE_CONSTANT, message)


def _failed(message: str) -> StageError:
    return StageError(Reason.FRAMEWORK_FAILED, message)
