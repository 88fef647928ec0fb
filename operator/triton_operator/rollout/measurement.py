"""Measure the target through the preview Service, and judge its figures. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import MeasureResult
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import RankedCandidate, best_row
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.measure import MeasureWork, measure_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import record_unmet_figures
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.rollout.decision import Figures
from triton_operator.rollout.preview import beyond, first_work, measured_concurrencies, merged
from triton_operator.rollout.regression import compare
from triton_operator.rollout.room import Room, room_for


@dataclass(frozen=True)
class Measured:
    """The target's measurement after this pass."""

    figures: Figures
    condition: Statement
    """The condition PerformanceMeasured."""
    effects: Effects
    result: MeasureResult | None = None
    """The online sweep through the preview Service; None: not measured yet."""
    best: RankedCandidate | None = None
    """The row of that sweep that the condition and the status show; None: not measured yet."""
    finished_at: str = ""
    """When the measurement ended, in RFC 3339, UTC; empty: it has not."""
    runs: bool = False
    """Whether a pod measures now, or a Job for one is created in this pass."""
    late: Statement | None = None
    """Why the operator no longer waits for the measurement, whose figures are LATE; None: it waits, or has them."""
    again_after: float | None = None
    """Seconds until the operator tries a measurement that failed again; None: it does not."""


def measure(
    context: Context,
    dump: Dump,
    target: Attempt,
    view: ServerView | None,
    *,
    is_waiting: bool,
    is_held: bool,
    is_active: bool,
) -> Measured:
    """Return the target's measurement, and the Job that measures it once its server is ready.

    ``view``: the target's Deployment. ``is_waiting``: whether its server is not ready. ``is_held``: whether the preview
    Service points to another revision's pods, so that the sweep may not begin. ``is_active``: whether the Service
    points to the target.
    """
    # The active revision may have to make room for each try, and then answers no request until the try ends.
    costs_active = context.spec.gpu is not None and context.active_server is not None and not is_active
    may_start = not is_waiting and not is_held
    works, job_run = _run_steps(context, dump, target, may_start, repeats=not costs_active)
    if job_run.failure is not None:
        condition = Statement("PerformanceMeasured", False, job_run.failure.reason, job_run.failure.message)
        return Measured(Figures.FAILED, condition, job_run.effects, again_after=next_try(context, [job_run]))
    result = job_run.result
    if result is None:
        condition = Statement(
            "PerformanceMeasured", None, Reason.WAITING, f"the server of {target.name} is not ready yet"
        )
        if not is_waiting or job_run.active:
            reason, message = waiting_reason("the online sweep through the preview Service", job_run, context)
            condition = Statement("PerformanceMeasured", False, reason, message)
        is_running = job_run.active and job_run.pending is None
        late = None if is_waiting or is_running or job_run.awaits_turn else _late_condition(context, view, condition)
        figures = Figures.MISSING if late is None else Figures.LATE
        return Measured(figures, condition, job_run.effects, runs=is_running, late=late)
    best = _best(context, result)
    finished_at = job_run.finished_at
    condition = _condition(context, dump, target, result, best, is_active)
    if condition.status:
        return Measured(Figures.PASSED, condition, job_run.effects, result, best, finished_at)
    trouble = Trouble(condition.reason, condition.message)
    effects = job_run.effects + record_unmet_figures(
        context, dict.fromkeys(_judged_records(context, works, target), trouble)
    )
    return Measured(Figures.MISSED, condition, effects, result, best, finished_at)


def profiled(context: Context, target: Attempt) -> Measured:
    """Return the figures of the target's profile as its measurement, where no server of it is to be measured."""
    profile, record = target.profile, context.observed.records.get(record_name("profile", target.profile_key))
    assert profile is not None
    condition = Statement("PerformanceMeasured", True, Reason.MEASURED, "measured on a private server")
    if not profile.online:
        return Measured(Figures.PASSED, condition, Effects())
    result = MeasureResult(profile.online, profile.environment, profile.mix)
    finished_at = record.finished_at if record is not None else ""
    return Measured(Figures.PASSED, condition, Effects(), result, _best(context, result), finished_at)


def _best(context: Context, result: MeasureResult) -> RankedCandidate:
    """Return the row that is judged. Constraints on another sweep say nothing about this one."""
    selection = context.spec.selection
    constraints = selection.constraints.as_requests if selection.scenario == "Online" else ()
    return best_row(result.online, selection.objectives, constraints)


def _run_steps(
    context: Context, dump: Dump, target: Attempt, may_start: bool, repeats: bool
) -> tuple[list[MeasureWork], Run[MeasureResult]]:
    """Run one step after the other until a measurement meets the constraints, or no load is left that may.

    Returns the works so far, and the last one's run: with the result of all, or of the one that has none yet.
    """
    works, results, effects = [first_work(context, dump, target)], list[MeasureResult](), Effects()
    while True:
        job_run = _run_sweep(context, works[-1], may_start, repeats)
        effects += job_run.effects
        job_run = replace(job_run, effects=effects)
        if job_run.result is None:
            return works, job_run
        results.append(job_run.result)
        loads = _next_loads(context, target, results)
        if not loads:
            return works, replace(job_run, result=merged(results))
        works.append(measure_work(context, dump, target, loads))


def _next_loads(context: Context, target: Attempt, results: Sequence[MeasureResult]) -> tuple[int, ...]:
    """Return the concurrencies of the next step; empty: the constraints are met, or no load is left that may."""
    missed = _best(context, merged(results)).violation
    measured = {row.concurrency for each in results for row in each.online}
    return () if missed is None else beyond(measured_concurrencies(target), measured, missed)


def _run_sweep(context: Context, work: MeasureWork, may_start: bool, repeats: bool) -> Run[MeasureResult]:
    """Run the online sweep. It is cancelled if no replicas are desired, because it would fail without a server."""
    job_run = run(context, work, start=may_start, repeats=repeats)
    if job_run.result is not None and not job_run.result.online:
        # The publisher refuses such an answer, but anybody may edit a record.
        message = f"the Job measured nothing; type: {context.retry_command}"
        trouble = Trouble(Reason.MEASUREMENT_FAILED, message)
        record_effects = record_unmet_figures(context, {record_name(work.stage, work.key): trouble})
        return replace(job_run, record=None, result=None, failure=trouble, effects=job_run.effects + record_effects)
    if context.spec.serving.replicas or not job_run.active:
        return job_run
    return replace(job_run, effects=replace(job_run.effects, objects=(), jobs=frozenset()), active=False)


def _late_condition(context: Context, view: ServerView | None, measured_condition: Statement) -> Statement | None:
    """Return why the operator no longer waits for a measurement that has not begun; None: it still does.

    ``measured_condition``: the measurement's condition, which says what it waits for.
    """
    if view is None or room_for(context, view) is not Room.SPENT:
        return None
    delay = f"the measurement of Deployment {view.name} did not begin in the time for which {context.active_server}"
    message = f"{delay} made room: {measured_condition.message}"
    return Statement("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, message)


def _judged_records(context: Context, works: Sequence[MeasureWork], target: Attempt) -> list[str]:
    """Return the names of the records whose figures decide whether the target may be active."""
    names = [record_name(work.stage, work.key) for work in works]
    if context.spec.selection.scenario != "Online":
        names.append(record_name("profile", target.profile_key))
    return names


def _condition(
    context: Context, dump: Dump, target: Attempt, result: MeasureResult, best: RankedCandidate, is_active: bool
) -> Statement:
    """Return the condition PerformanceMeasured by the measured figures."""
    selection = context.spec.selection
    broken = selection.constraints.broken(best.violation) if best.violation is not None else ""
    if broken and selection.fallback == "None":
        message = (
            f"{target.name} breaks a constraint through the preview Service: {broken} at its closest"
            f" measurement ({best.load}); relax the constraint, or look for what disturbs the node"
        )
        return Statement("PerformanceMeasured", False, Reason.CONSTRAINTS_NOT_MET, message)
    message = f"{selection.constraints.row_words(best.row)} at {best.load}"
    if broken:
        message += f"; it breaks a constraint, which spec.selection.fallback allows: {broken}"
    assert target.profile is not None
    comparison = compare(context, dump.source, target.profile, result)
    if comparison is None:
        return Statement("PerformanceMeasured", True, Reason.MEASURED, message)
    message += f"; {comparison.message}"
    bounds = context.spec.performance.regression
    is_regressed = comparison.reason is Reason.PERFORMANCE_REGRESSED
    if is_regressed and bounds is not None and bounds.block and not is_active and context.active_server is not None:
        message += (
            f"; Deployment {context.active_server} stays active, because spec.performance.regression.block is true"
        )
        return Statement("PerformanceMeasured", False, comparison.reason, message)
    return Statement("PerformanceMeasured", True, comparison.reason, message)
