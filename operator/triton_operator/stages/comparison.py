"""Comparison: a candidate that is worse than what served before does not take over.

Candidates that met every threshold are held against two earlier states of the object on the same samples: the last one
of another reference, and the anchor. What has served, or was judged when its reference served, is not judged again, so
going back runs no Job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from triton_converters.contract.comparison import MarkComparison, compare, compared_metrics, direction
from triton_converters.contract.comparison_result import ComparisonResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.comparison import comparison_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import Run, run, waiting_reason
from triton_operator.observed.trouble import Trouble


@dataclass(frozen=True)
class Comparison:
    """The candidates after the comparison, and what it asks of the cluster."""

    attempts: tuple[Attempt, ...]
    effects: Effects = field(default_factory=Effects)
    job_run: Run[ComparisonResult] | None = None
    """The run of the Job that compares; None: none is needed."""


def compare_candidates(context: Context, dump: Dump, attempts: Sequence[Attempt], *, repeats: bool) -> Comparison:
    """Compare the candidates that passed so far. ``repeats``: as `run` takes it."""
    spec = context.spec
    compared = compared_metrics([each.as_request() for each in spec.accuracy.thresholds])
    passed = [each for each in attempts if each.passed]
    if spec.metrics is None or spec.accuracy.regression.policy == "Ignore" or not compared or not passed:
        return Comparison(tuple(attempts))
    known = {each.name: _known(context, each) for each in passed}
    effects = Effects(needed=frozenset(filter(None, known.values())))
    new = [each for each in passed if known[each.name] is None]
    marks = context.observed.history.marks(dump.key)
    job_run = None
    if new and marks:
        is_due = any(each.key != context.active_revision for each in new)
        job_run = run(context, comparison_work(context, dump, new, marks), start=is_due, repeats=repeats)
        effects += job_run.effects

    def compared_attempt(attempt: Attempt) -> Attempt:
        record = known.get(attempt.name, "")
        if record:
            result = context.observed.records[record].outcome.result
            assert isinstance(result, ComparisonResult)
            return _judged(context, attempt, result)
        return attempt if record is not None or job_run is None else _after(context, attempt, job_run)

    return Comparison(tuple(map(compared_attempt, attempts)), effects, job_run)


def _known(context: Context, attempt: Attempt) -> str | None:
    """Return the name of the record by which the candidate was judged when a state served; empty: it needed none.

    None: it is not judged yet, or by metrics that were computed in another way.
    """
    # One that is damaged is published anew, under another key.
    keys = {attempt.key, *attempt.replaces}
    metrics = record_name("metrics", attempt.metrics_key)
    for state in context.observed.history.states:
        if not {record_name("convert", key) for key in keys}.intersection(state.records):
            continue
        comparisons = [each for each in state.records if each.startswith(record_name("comparison", ""))]
        for name in comparisons if metrics in state.records else ():
            record = context.observed.records.get(name)
            result = record.outcome.result if record is not None else None
            if isinstance(result, ComparisonResult) and attempt.profile_key in result.profiles:
                return name
        if not comparisons or (state.revision is not None and state.revision.key in keys):
            return ""
    return None


def _after(context: Context, attempt: Attempt, job_run: Run[ComparisonResult]) -> Attempt:
    """Return a candidate as the Job leaves it that compares it."""
    if job_run.result is not None:
        return _judged(context, attempt, job_run.result)
    if attempt.key == context.active_revision:
        return attempt
    if job_run.failure is not None:
        message = f"comparison with earlier revisions: {job_run.failure.message}"
        return attempt.in_state("Failed", Trouble(job_run.failure.reason, message))
    words = "the Job that compares the candidates with earlier revisions"
    return attempt.in_state("Profiled", Trouble(*waiting_reason(words, job_run, context)))


def _judged(context: Context, attempt: Attempt, result: ComparisonResult) -> Attempt:
    """Return a candidate with its comparison. What has served, or somebody approved, passes all the same."""
    regression = context.spec.accuracy.regression
    found = compare(result, attempt.profile_key, attempt.accuracy, regression.max_percent)
    attempt = replace(attempt, compared=found)
    worse = "; ".join(_worse_words(context, each) for each in found if each.worse)
    if not worse or _has_served(context, attempt):
        return attempt
    approved = context.spec.selection.approved_revision
    if approved is not None and approved in (attempt.key, *attempt.replaces):
        return attempt.in_state("Passed", Trouble(Reason.PASSED, f"approved although {worse}"))
    accept = f"kubectl triton approve {context.name} {attempt.key} --namespace {context.namespace}"
    message = f"{worse}; improve the model, or serve it all the same, in place of the active one: {accept}"
    return attempt.in_state("Failed", Trouble(Reason.WORSE_THAN_BEFORE, message))


def _has_served(context: Context, attempt: Attempt) -> bool:
    served = {each.revision.key for each in context.observed.history.states if each.revision is not None}
    return not {attempt.key, *attempt.replaces}.isdisjoint({*served, context.active_revision})


def _worse_words(context: Context, compared: MarkComparison) -> str:
    mark = _mark_name(context, compared.revision)
    return "; ".join(each.worse_words(mark, compared.samples) for each in compared.worse)


def _mark_name(context: Context, key: str) -> str:
    """Return what a message calls an earlier revision: its key and, where it is known, when it was measured."""
    history = context.observed.history
    states = (each.revision for each in history.states)
    revision = next((each for each in states if each is not None and each.key == key), None)
    since = f" of {revision.measured_at}" if revision is not None and revision.measured_at else ""
    is_anchor = revision is not None and history.anchor is not None and revision == history.anchor.revision
    role = "the anchor, " if is_anchor else "the active " if key == context.active_revision else ""
    return f"{role}revision {key}{since}"


def told(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Yield what the comparison of the candidates that passed says, and what it does not, in words."""
    thresholds = [each.as_request() for each in context.spec.accuracy.thresholds]
    marks = context.observed.history.marks(dump.key)
    if context.spec.accuracy.regression.policy == "Ignore" or not thresholds:
        return
    active = context.active_revision
    measured = {each.revision.key for each in context.observed.history.states if each.revision and each.profile}
    if active not in {"", *measured, *(key for each in attempts for key in (each.key, *each.replaces))}:
        yield f"not comparable with revision {active}: its results were lost"
    if not marks:
        return
    # Candidates of one framework differ little from each other.
    first = next((each for each in attempts if each.passed and each.compared), None)
    if first is not None:
        yield from (words for each in first.compared for words in _compared_words(context, first.name, each))
    if unsure := ", ".join(each.metric for each in thresholds if not direction(each)):
        advice = "set min alone if more is better, or max alone if less is"
        yield f"{unsure} is not compared with earlier revisions: {advice}"


def _compared_words(context: Context, candidate: str, compared: MarkComparison) -> Iterator[str]:
    mark = _mark_name(context, compared.revision)
    if compared.differences:
        figures = ", ".join(each.words(compared.samples) for each in compared.differences)
        yield f"{candidate} compared with {mark}: {figures}"
    if compared.obstacle:
        yield f"not comparable with {mark}: {compared.obstacle}"
