"""Measure the target through the preview Service, and judge its figures. Pure."""

from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import MeasureResult
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import Choice, best_row
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.measure import MeasureWork, measure_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import record_unmet_figures
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.rollout import room
from triton_operator.rollout.decision import Figures
from triton_operator.rollout.regression import compare


@dataclass(frozen=True)
class Measured:
    """What is known of the target's figures."""

    figures: Figures
    condition: Statement
    """The condition of the target's measurement."""
    effects: Effects
    result: MeasureResult | None = None
    """The online sweep through the preview Service; None: not measured yet."""
    best: Choice | None = None
    """The row of that sweep which the condition tells, and the status too; None: not measured yet."""
    finished_at: str = ""
    """When the measurement ended, in RFC 3339, UTC."""
    runs: bool = False
    """Whether a pod measures now, or a Job for one is created in this pass."""
    late: Statement | None = None
    """Why the measurement is not waited for any more, with figures that are LATE; None otherwise."""
    again_after: float | None = None
    """Seconds until a measurement that failed is tried again by itself; None: it is not."""


def measure(
    context: Context,
    dump: Dump,
    target: Attempt,
    view: ServerView | None,
    *,
    waits: bool,
    held: bool,
    is_active: bool,
) -> Measured:
    """Return the target's figures, and what it takes to come to them once its server is ready.

    ``view``: the target's Deployment. ``waits``: its server is not ready. ``held``: the preview Service points to
    another revision's pods, so the sweep may not begin. ``is_active``: the Service points to the target.
    """
    work = measure_work(context, dump, target)
    # What serves may make room for each try, and answer no request until that ends.
    costs_others = context.spec.gpu is not None and context.active_server is not None and not is_active
    known = _run_sweep(context, work, not waits and not held, repeats=not costs_others)
    if known.failure is not None:
        condition = Statement("PerformanceMeasured", False, known.failure.reason, known.failure.message)
        return Measured(Figures.FAILED, condition, known.effects, again_after=next_try(context, [known]))
    result = known.result
    if result is None:
        condition = Statement(
            "PerformanceMeasured", None, Reason.WAITING, f"the server of {target.name} is not ready yet"
        )
        if not waits or known.active:
            reason, message = waiting_reason("the online sweep through the preview Service", known, context)
            condition = Statement("PerformanceMeasured", False, reason, message)
        runs = known.active and known.pending is None
        late = None if waits or runs else _late_condition(context, view, condition)
        figures = Figures.MISSING if late is None else Figures.LATE
        return Measured(figures, condition, known.effects, runs=runs, late=late)
    # Constraints on another sweep say nothing about this one.
    selection, at = context.spec.selection, known.finished_at
    constraints = selection.constraints.asked if selection.scenario == "Online" else ()
    best = best_row(result.online, selection.objectives, constraints)
    condition = _condition(context, dump, target, result, best, is_active)
    if condition.status:
        return Measured(Figures.PASSED, condition, known.effects, result, best, at)
    trouble = Trouble(condition.reason, condition.message)
    effects = known.effects + record_unmet_figures(
        context, dict.fromkeys(_judged_records(context, work, target), trouble)
    )
    return Measured(Figures.MISSED, condition, effects, result, best, at)


def _run_sweep(context: Context, work: MeasureWork, ready: bool, repeats: bool) -> Run[MeasureResult]:
    """The online sweep; it is cancelled when no replicas are desired, because it would fail without a server."""
    known = run(context, work, start=ready, repeats=repeats)
    if known.result is not None and not known.result.online:
        # An earlier version's publisher let a client answer anything.
        message = f"the Job measured nothing; type: {context.retry_command}"
        trouble = Trouble(Reason.MEASUREMENT_FAILED, message)
        remembered = record_unmet_figures(context, {record_name(work.stage, work.key): trouble})
        return replace(known, record=None, result=None, failure=trouble, effects=known.effects + remembered)
    if context.spec.serving.replicas or not known.active:
        return known
    return replace(known, effects=replace(known.effects, objects=(), jobs=frozenset()), active=False)


def _late_condition(context: Context, view: ServerView | None, measured: Statement) -> Statement | None:
    """Why a measurement that has not begun is not waited for any more; None: it is.

    ``measured``: its condition, which says what it waits for.
    """
    if view is None or not room.is_spent(context, view):
        return None
    words = f"the measurement of Deployment {view.name} did not begin in the time for which {context.active_server}"
    message = f"{words} made room: {measured.message}"
    return Statement("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, message)


def _judged_records(context: Context, work: MeasureWork, target: Attempt) -> list[str]:
    """Names of the records with the figures that the target is judged by before it may serve."""
    judged = [record_name(work.stage, work.key)]
    if context.spec.selection.scenario != "Online":
        judged.append(record_name("profile", target.profile_key))
    return judged


def _condition(
    context: Context, dump: Dump, target: Attempt, result: MeasureResult, best: Choice, is_active: bool
) -> Statement:
    """The condition by the figures that were measured."""
    selection = context.spec.selection
    broken = selection.constraints.broken(best.violation) if best.violation is not None else ""
    if broken and selection.fallback == "None":
        message = (
            f"{target.name} breaks a constraint through the preview Service: {broken} at its closest"
            f" measurement ({best.load}); relax the constraint, or look for what disturbs the node"
        )
        return Statement("PerformanceMeasured", False, Reason.CONSTRAINTS_NOT_MET, message)
    message = f"{selection.constraints.told(best.row)} at {best.load}"
    if broken:
        message += f"; it breaks a constraint, which spec.selection.fallback allows: {broken}"
    assert target.profile is not None
    comparison = compare(context, dump.source, target.profile, result)
    if comparison is None:
        return Statement("PerformanceMeasured", True, Reason.MEASURED, message)
    message += f"; {comparison.words}"
    bounds, regressed = context.spec.performance.regression, comparison.reason is Reason.PERFORMANCE_REGRESSED
    if regressed and bounds is not None and bounds.block and not is_active and context.active_server is not None:
        message += (
            f"; Deployment {context.active_server} stays active, because spec.performance.regression.block is true"
        )
        return Statement("PerformanceMeasured", False, comparison.reason, message)
    return Statement("PerformanceMeasured", True, comparison.reason, message)
