"""Bootstrap the differences between the metrics of candidates and those of earlier revisions.

A revision's metrics vary with the samples that happen to be there, and so does the difference from another revision's.
The standard deviation of that difference over resamples, of which both get the same samples, is its standard error
(the paired bootstrap; Efron and Tibshirani, An Introduction to the Bootstrap, 1993).

Two revisions that are equally good agree about most samples, so their difference is known well. A worse one disagrees
about more, and so its loss is less sure. How much less follows from a mark of which some answers are exchanged.
"""

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch, read_batches
from triton_converters.claim_store.replay import read_reference
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.formats import has_runtime
from triton_converters.contract.measurement_requests import (
    COMPARISON_SECONDS,
    OUTSIDE_SECONDS,
    ComparisonRequest,
    KeptOutputs,
    Mark,
)
from triton_converters.contract.results import Signature
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllCompared, ComputedMark
from triton_converters.stages import answers
from triton_converters.user import metrics
from triton_converters.user.metrics import DataSet

RESAMPLES = 200
"""How often samples are drawn: the standard error is then known to 5 % (1 / sqrt(2 * 200)). Source: the book above,
which asks for 50 to 200."""
EXCHANGED = 0.1
"""Share of a mark's answers that are exchanged for those to other samples, to see what a loss does to its own standard
error: enough to be a loss in 100 samples, and few enough that what is left is still the mark."""
EXCHANGED_PART = 0.9
"""How far numbers that are exchanged go towards the others. All the way, a probability that was sure and is wrong
would add more to a log loss than a worse model does: 7 to 11 times its loss in variance, and models 1 to 5 times."""
GAINS = 1.5
"""How much more variance a loss of a worse model adds than one of exchanged answers, which hardly gain anywhere: 1.1 to
2.3 times in accuracy, for models of few samples, of few features, of wrong labels and of noise (tests/simulation)."""
SEED = 0
"""What the generator that draws begins with, so that a Job that is made again finds the same."""

UNKEPT = "its kept outputs are gone or of other samples"
"""Why a mark's file has to answer."""


@dataclass(frozen=True)
class _Answers:
    """The answers of a candidate or a mark to all samples."""

    given: KeptOutputs
    y_pred: Arrays


class _Calculator:
    """Computes the compared metrics of answers to samples that are drawn."""

    def __init__(self, request: ComparisonRequest, samples: DataSet) -> None:
        """``samples``: with any answers, which are not looked at."""
        self._request = request
        self._samples = samples

    def values(self, of: _Answers, rows: Array) -> list[float]:
        """Return the metrics in the request's order; NaN: there is none.

        ``rows``: the numbers of the samples, from 0. Raises StageError, as ``metrics.calculate`` does.
        """
        samples = self._samples
        # In arrays of their own, which the user's code may change.
        x, y_real, y_pred = (
            {name: array[rows] for name, array in each.items()} for each in (samples.x, samples.y_real, of.y_pred)
        )
        data = DataSet(samples.ids[rows], x, y_real, y_pred)
        found = answers.calculate(self._request, data, of.given.precision, of.given.format)
        return [found.get(name, math.nan) for name in self._request.required]


def run(request: ComparisonRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write what each mark reaches, and the standard errors. A mark that has no answers is not comparable.

    Raises StageError: MetricFailed for broken outputs of a candidate, and what ``user_code.call`` raises.
    """
    batches, left_out = answers.judged_batches(request)
    batched = request.max_batch_size > 0
    samples = metrics.gather(batches, batched)
    count = len(samples.ids)
    calculator, ends = _Calculator(request, samples), time.monotonic() + OUTSIDE_SECONDS
    sets = [
        _Answers(each, answers.served(batches, batched, left_out, each.profile).y_pred) for each in request.candidates
    ]
    # With the place of its answers among the sets.
    marks: list[tuple[ComputedMark, int]] = []
    for each in request.marks:
        try:
            mark = _Answers(each.outputs, _data_of(request, each, batches, left_out, ends).y_pred)
            values = calculator.values(mark, numpy.arange(count))
        except Exception as error:
            print(f"revision {each.revision} is not comparable: {answers.reason_of(error)}", flush=True)
            marks.append((ComputedMark(message=answers.reason_of(error)), 0))
        else:
            marks.append((ComputedMark(_named(request, values)), len(sets)))
            sets += [mark, _spoilt(mark, count)]
    # As many bytes as the samples, of which each draw makes a copy.
    del batches
    table, message = numpy.empty(0), ""
    if len(sets) > len(request.candidates):
        table, message = _resampled(calculator, sets, count, len(request.required))
    told = tuple(
        each
        if each.message
        else replace(each, errors=_errors(request, table, place), noise=_noise(request, table, place))
        for each, place in marks
    )
    documents.write(incoming, documents.COMPARISON, AllCompared(count, told, message))


def _resampled(calculator: _Calculator, sets: Sequence[_Answers], samples: int, metrics: int) -> tuple[Array, str]:
    """Return the metrics of every resample, by resample, set and metric, and why some are NaN; empty: none is."""
    generator = numpy.random.default_rng(SEED)
    table, message = numpy.full((RESAMPLES, len(sets), metrics), math.nan), ""
    failed: set[int] = set()
    ends = time.monotonic() + COMPARISON_SECONDS
    for number in range(RESAMPLES):
        if time.monotonic() > ends:
            table[:] = math.nan
            return table, f"the metrics of {RESAMPLES} resamples take longer than {COMPARISON_SECONDS} s"
        rows = generator.integers(samples, size=samples)
        for index in sorted({*range(len(sets))} - failed):
            try:
                table[number, index] = calculator.values(sets[index], rows)
            except Exception as error:
                failed.add(index)
                message = f"the metrics of samples that are drawn again fail: {answers.reason_of(error)}"
    if not message and not numpy.isfinite(table).all():
        message = "the metrics of samples that are drawn again are not finite"
    return table, message


def _errors(request: ComparisonRequest, table: Array, mark: int) -> tuple[Mapping[str, float | None], ...]:
    """Return the standard errors of each candidate's differences from the set of that number."""
    with numpy.errstate(invalid="ignore"):
        return tuple(
            _named(request, (table[:, index] - table[:, mark]).std(axis=0, ddof=1).tolist())
            for index in range(len(request.candidates))
        )


def _noise(request: ComparisonRequest, table: Array, mark: int) -> Mapping[str, float | None]:
    """Return how much the variance of a difference grows with the loss, by the mark and its spoilt answers."""
    loss = table[:, mark] - table[:, mark + 1]
    with numpy.errstate(invalid="ignore", divide="ignore"):
        return _named(request, (GAINS * loss.var(axis=0, ddof=1) / abs(loss.mean(axis=0))).tolist())


def _spoilt(mark: _Answers, samples: int) -> _Answers:
    """Return the answers, EXCHANGED of them those to other samples, or numbers near those."""
    chance = numpy.random.default_rng(SEED)
    chosen = chance.choice(samples, max(1, round(EXCHANGED * samples)), replace=False)
    others = chance.integers(samples, size=len(chosen))

    def exchanged(array: Array) -> Array:
        found, new = array.copy(), array[others]
        if array.dtype.kind == "f":
            new = EXCHANGED_PART * new + (1 - EXCHANGED_PART) * array[chosen]
        found[chosen] = new
        return found

    return replace(mark, y_pred={name: exchanged(array) for name, array in mark.y_pred.items()})


def _named(request: ComparisonRequest, values: Sequence[float]) -> Mapping[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in zip(request.required, values, strict=True)}


def _data_of(
    request: ComparisonRequest, mark: Mark, batches: Sequence[Batch], left_out: Collection[int], ends: float
) -> DataSet:
    """Return a mark's answers to the current samples: those that its profile kept, or else those of its file.

    Raises StageError(InputMissing) if its reference is gone, ValueError for what cannot answer, and what its format's
    runtime raises.
    """
    earlier = read_reference(mark.reference)
    batched = request.max_batch_size > 0
    current = read_reference(request.reference)
    if _tensors(earlier.signature) != _tensors(current.signature):
        raise ValueError("its inputs or outputs have other names or types")
    if _same_samples(mark.reference, request.reference) and any(layout.kept_outputs(mark.outputs.profile).glob("*")):
        return _whole(answers.served(batches, batched, left_out, mark.outputs.profile))
    if not has_runtime(mark.outputs.format):
        raise ValueError(f"{UNKEPT}, and its format, {mark.outputs.format}, runs in Triton alone")
    file = model_file(mark.revision, mark.model_name, mark.outputs.format)
    if not file.exists():
        raise ValueError(f"{UNKEPT}, and no file of it alone is on the repository claim")
    answered = answers.outside(batches, mark.outputs.format, earlier.signature, file.parent, ends)
    return _whole(metrics.gather(answered, batched))


def _whole(data: DataSet) -> DataSet:
    """Return the samples with their answers. Raises ValueError if some have none."""
    if any(len(array) != len(data.ids) for array in data.y_pred.values()):
        raise ValueError("it does not answer each sample")
    return data


def _tensors(signature: Signature) -> tuple[dict[str, str], ...]:
    return tuple({each.name: each.data_type for each in tensors} for tensors in (signature.inputs, signature.outputs))


def _same_samples(one: str, other: str) -> bool:
    """Whether two references have the same ids, inputs and labels, in the same batches."""
    batches = zip_longest(*(read_batches(layout.reference_directory(key)) for key in (one, other)))
    return all(
        first is not None and second is not None and list(_samples(first)) == list(_samples(second))
        for first, second in batches
    )


def _samples(batch: Batch) -> Iterator[tuple[str, str, tuple[int, ...], object]]:
    """Yield name, type, shape and content of each array that belongs to the samples."""
    yield from _content({"ids": batch.ids})
    yield from _content(batch.inputs)
    yield from _content(batch.labels)


def _content(arrays: Arrays) -> Iterator[tuple[str, str, tuple[int, ...], object]]:
    for name, array in sorted(arrays.items()):
        yield name, array.dtype.str, array.shape, array.tolist() if array.dtype.hasobject else array.tobytes()
