"""Which loads are measured through the preview Service where the spec asks for none. Pure.

The profile has found the limit. Through the Service only what matters is measured again: the load at which the target
was chosen, and those below and above. Then lower ones, or higher ones if the throughput is too low, until one meets the
constraints. Each of these steps is a Job, whose request holds its loads and neither objectives nor constraints. So an
edit of these measures nothing as long as something that was measured meets them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from triton_converters.contract.records import record_name
from triton_converters.contract.results import MeasureResult
from triton_converters.contract.saturation import saturation
from triton_converters.contract.scoring import THROUGHPUT, Violation
from triton_converters.contract.step_times import StepTimes, by_model
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.environments import differences
from triton_operator.candidates.ranking import best_row
from triton_operator.context import Context
from triton_operator.jobs.measure import MeasureWork, measure_work
from triton_operator.jobs.reference import Dump

STEP = 3
"""Most loads of one Job: one, and those around it."""


def around(concurrencies: Sequence[int], chosen: int) -> tuple[int, ...]:
    """Return a concurrency with the ones below and above; ``concurrencies``: all of the profile, from low to high."""
    at = concurrencies.index(chosen)
    return tuple(concurrencies[max(0, at - 1) : at + 2])


def beyond(concurrencies: Sequence[int], measured: Collection[int], missed: Violation) -> tuple[int, ...]:
    """Return the next concurrencies to measure after some that do not meet the constraints; empty: there is none.

    ``missed``: the constraint that their best row misses. More requests in flight bring throughput, and fewer bring
    lower latencies.
    """
    if missed.constraint.metric == THROUGHPUT:
        return tuple(each for each in concurrencies if each > max(measured))[:STEP]
    return tuple(each for each in concurrencies if each < min(measured))[-STEP:]


def first_work(context: Context, dump: Dump, target: Attempt) -> MeasureWork:
    """Return the work around the target's load: what was measured of it before, if there is such a record."""
    concurrencies = measured_concurrencies(target)
    if context.spec.performance.online is not None or not concurrencies:
        return measure_work(context, dump, target)
    windows = dict.fromkeys([around(concurrencies, _chosen(context, target)), *_windows(concurrencies)])
    works = (measure_work(context, dump, target, window) for window in windows)
    first = next(works)
    records = context.observed.records
    others = (each for each in works if record_name(each.stage, each.key) in records)
    return first if record_name(first.stage, first.key) in records else next(others, first)


def measured_concurrencies(target: Attempt) -> tuple[int, ...]:
    """Return the concurrencies of the target's profile, from low to high."""
    return tuple(sorted({row.concurrency for row in target.profile.online})) if target.profile else ()


def merged(results: Sequence[MeasureResult]) -> MeasureResult:
    """Return one result of several steps: the last one's, with the rows of those in the same environment."""
    last = results[-1]
    alike = [each for each in results if not any(differences(each.environment, last.environment))]
    rows = {(row.batch_size, row.concurrency): row for each in alike for row in each.online}
    return replace(last, online=tuple(rows[load] for load in sorted(rows)), steps=_merged_steps(alike))


def _merged_steps(results: Sequence[MeasureResult]) -> tuple[StepTimes, ...]:
    """Return the times of an ensemble's models at all loads of ``merged``; empty if a result lacks those of a model."""
    times = {
        (row.batch_size, row.concurrency): {step.model: (step.queue[at], step.compute[at]) for step in each.steps}
        for each in results
        for at, row in enumerate(each.online)
    }
    return by_model([times[load] for load in sorted(times)])


def _windows(concurrencies: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield what an earlier choice may have measured first, from high to low: lower loads may be a later step."""
    return (around(concurrencies, each) for each in reversed(concurrencies))


def _chosen(context: Context, target: Attempt) -> int:
    """Return the concurrency at which the target was chosen; where it was by another sweep, that of its saturation."""
    assert target.profile is not None
    selection, rows = context.spec.selection, target.profile.online
    if selection.scenario == "Online":
        return best_row(rows, selection.objectives, selection.constraints.as_requests).row.concurrency
    found = saturation(rows, selection.constraints.as_requests)
    return found.row.concurrency if found is not None and found.row is not None else rows[0].concurrency
