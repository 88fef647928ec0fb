"""Search: measure other configurations of the best candidates; the best ones then have to pass the gates.

A search is a series of Jobs, one at a time and never together with a profile Job. Its result is a new candidate named
``<candidate>.tuned``: the same file, converted (that is, replayed), verified and measured like any other. A search
that fails does not change what the object would serve without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from triton_converters.contract import scoring
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SearchEnd, SearchPoint, SearchResult, Tuning
from triton_converters.contract.search_parts import LEAST_MEASUREMENTS, LONGEST_OVERRUN_SECONDS, excess
from triton_converters.contract.text import shortened
from triton_operator import names
from triton_operator.api.duration import seconds
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate
from triton_operator.candidates.ranking import RankedCandidate, best_row, improvement, noise
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.convert import spec_tuning
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import Run, next_try, run, waiting_reason
from triton_operator.jobs.search import Budget, search_work
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.contenders import measure_again, rank_candidates
from triton_operator.stages.convert import conversion_round
from triton_operator.stages.profile import is_measuring, profile_round
from triton_operator.stages.progress import Round
from triton_operator.stages.reference import Referred
from triton_operator.stages.repairing import record_damage

MOST_SEARCHED = 2
"""The most candidates that are searched, the best ones first.

Two, because the best one is not always the one that a search improves most; each further one divides the budget.
"""
LONGEST_OUTAGE_SECONDS = 600.0
"""How long a search waits for a failure to pass that passes by itself: the object can serve without it, and a node or a
registry that is started again is back within ten minutes."""
SPENT_WORDS = {
    SearchEnd.MEASUREMENTS_SPENT: " because its measurements are spent",
    SearchEnd.TIME_SPENT: " because its time is spent",
}
"""Why a search ended before it had measured all that it meant to."""


@dataclass(frozen=True)
class CandidateSearch:
    """The search for one candidate's best configuration, with everything that is recorded of it."""

    candidate: str
    points: tuple[SearchPoint, ...] = ()
    """The points of all parts so far, in the order of their measurement."""
    repeats: tuple[SearchPoint, ...] = ()
    """The best points, measured again at the end."""
    size: int = 0
    """Number of points in the whole space of configurations; 0: not known yet."""
    seconds: float = 0.0
    """Seconds spent on measuring."""
    ended: SearchEnd = SearchEnd.GOES_ON
    pending: Trouble | None = None
    """What the search waits for while it goes on; None: it has ended."""
    job: str = ""
    """Name of the Job that measures now; empty: none does."""
    again_after: float | None = None
    """Seconds until the operator tries a part that failed again; None: it tries none again."""
    failure: Trouble | None = None
    records: tuple[str, ...] = ()
    """Keys of the parts' records."""
    best: SearchPoint | None = None
    """The best point among those that could serve."""

    @property
    def measurements(self) -> int:
        """How many measurements of the budget are spent."""
        return len(self.points) + len(self.repeats)

    @property
    def outcome(self) -> str:
        """How the search ended, in words."""
        if self.failure is not None:
            reason_words = shortened(self.failure.message, 200)
            return f"the search for a configuration of {self.candidate} failed ({self.failure.reason}: {reason_words})"
        extent = f"{self.measurements} measurements in a space of {self.size} points"
        sentence = f"the search for a configuration of {self.candidate} ended after {extent}"
        return f"{sentence}{SPENT_WORDS.get(self.ended, '')}"


@dataclass(frozen=True)
class SearchProgress:
    """All searches, and the candidates that they found."""

    attempts: tuple[Attempt, ...]
    """The profiled candidates, then the candidates that the searches found."""
    effects: Effects = field(default_factory=Effects)
    searches: tuple[CandidateSearch, ...] = ()
    waits: Statement | None = None
    """The condition while a search goes on, or a Job for a candidate that a search found; None: all have ended."""

    @property
    def again_after(self) -> float | None:
        """Seconds until the operator goes on with a search whose last part failed; None: it waits for none."""
        return self.searches[-1].again_after if self.searches else None


@dataclass(frozen=True, kw_only=True)
class Searched(Referred):
    """The searches have begun, or none is asked for."""

    searches: tuple[CandidateSearch, ...]
    ranking: tuple[RankedCandidate, ...]
    """The candidates that passed every gate, from best to worst."""


def search(context: Context, progress: Referred) -> Searched:
    """Go on once every search has ended, and what it found has passed the gates or failed at one."""
    if (odd := measure_again(context, progress.dump, progress.attempts)) is not None:
        return _measured_again(progress.advance_to(Searched, searches=(), ranking=()), odd)
    search_progress = _search_leaders(context, progress.dump, progress.attempts)
    searched = progress.advance_to(
        Searched,
        attempts=search_progress.attempts,
        effects=progress.effects + search_progress.effects,
        searches=search_progress.searches,
        ranking=tuple(rank_candidates(context, search_progress.attempts)),
    )
    if search_progress.waits is None:
        # Another measurement of the candidates that it began with would be the beginning of another search.
        odd = measure_again(context, progress.dump, search_progress.attempts, kept=progress.attempts)
        return searched if odd is None else _measured_again(searched, odd)
    return replace(searched.wait_with(search_progress.waits), again_after=search_progress.again_after)


def _measured_again(searched: Searched, odd: tuple[Effects, Statement]) -> Searched:
    effects, statement = odd
    return searched.wait_with(statement, effects)


def _search_leaders(context: Context, dump: Dump, candidates: tuple[Attempt, ...]) -> SearchProgress:
    """Search the configurations of the best candidates one after the other, then convert and profile better ones."""
    limits = context.spec.selection.search
    if limits.mode == "None":
        return SearchProgress(candidates)
    leaders = rank_candidates(context, candidates)[:MOST_SEARCHED]
    by_name = {attempt.name: attempt for attempt in candidates}
    budget, effects, searches = Budget(limits.measurements, ceil(seconds(limits.duration))), Effects(), []
    for number, leader in enumerate(leaders):
        share = budget.share(len(leaders) - number)
        if share.measurements < LEAST_MEASUREMENTS or share.seconds < 1:
            break
        candidate_search, search_effects = _search_candidate(context, dump, by_name[leader.name], share)
        effects += search_effects
        searches.append(candidate_search)
        if not candidate_search.ended:
            return SearchProgress(
                candidates, effects, tuple(searches), _searching_condition(context, searches, limits.measurements)
            )
        budget = budget.minus(candidate_search.measurements, candidate_search.seconds)
    better_candidates = [
        candidate
        for candidate_search, leader in zip(searches, leaders[: len(searches)], strict=True)
        if (candidate := _tuned_candidate(context, by_name[leader.name], leader, candidate_search))
    ]
    return _convert_and_profile(context, dump, SearchProgress(candidates, effects, tuple(searches)), better_candidates)


def _search_candidate(
    context: Context, dump: Dump, attempt: Attempt, budget: Budget
) -> tuple[CandidateSearch, Effects]:
    """Return a candidate's search with the parts that are measured so far, and what it asks of the cluster."""
    candidate_search, effects = CandidateSearch(attempt.name), Effects()
    is_busy = is_measuring(context)
    for part in range(budget.measurements):
        work = search_work(context, dump, attempt, budget, part)
        job_run = run(context, work, start=not is_busy, repeats=True, gives_up_after=LONGEST_OUTAGE_SECONDS)
        effects += job_run.effects
        if job_run.failure is not None and job_run.failure.reason is Reason.REPOSITORY_DAMAGED:
            effects += record_damage(context, attempt.key, job_run.failure)
        if job_run.failure is None and job_run.result is not None:
            candidate_search = _with_part(candidate_search, job_run.result, work.key, budget)
        else:
            candidate_search = _without_part(context, candidate_search, job_run)
        if candidate_search.ended or candidate_search.pending:
            break
    else:
        candidate_search = replace(candidate_search, ended=SearchEnd.MEASUREMENTS_SPENT)
    return _with_best(context, candidate_search), effects


def _without_part(context: Context, candidate_search: CandidateSearch, job_run: Run[SearchResult]) -> CandidateSearch:
    """Return the search as the next part leaves it that has no result: tried again, failed, running or waiting."""
    failure = job_run.failure
    if failure is not None and job_run.failing is not None:
        pending = Trouble(failure.reason, f"{failure.message}; trying again")
        return replace(candidate_search, pending=pending, again_after=next_try(context, [job_run]))
    if failure is not None:
        return replace(candidate_search, ended=SearchEnd.FAILED, failure=failure)
    pending = Trouble(Reason.WAITING, "the search waits for its turn")
    if job_run.active or job_run.awaits_turn or context.spec.suspend:
        pending = Trouble(*waiting_reason("the search", job_run, context))
    job = next(iter(job_run.effects.jobs), "") if job_run.active else ""
    return replace(candidate_search, pending=pending, job=job)


def _with_part(candidate_search: CandidateSearch, result: SearchResult, key: str, budget: Budget) -> CandidateSearch:
    """Return the search with what the next part measured; it ends if that says so, or cannot be."""
    # The publisher refuses such an answer, but anybody may edit a record.
    if excess_words := excess(result, candidate_search.measurements, budget.measurements):
        message = f"a Job of the search answered {excess_words}; change spec.selection.search, and it is searched anew"
        failure = Trouble(Reason.RESULT_MISSING, message)
        return replace(candidate_search, ended=SearchEnd.FAILED, failure=failure)
    return replace(
        candidate_search,
        points=candidate_search.points + result.points,
        repeats=result.repeats,
        size=result.size,
        seconds=min(max(0.0, result.seconds), budget.seconds + LONGEST_OVERRUN_SECONDS),
        ended=result.ended,
        records=(*candidate_search.records, key),
    )


def _with_best(context: Context, candidate_search: CandidateSearch) -> CandidateSearch:
    selection = context.spec.selection
    objectives = tuple(each.as_request() for each in selection.objectives)
    constraints = selection.constraints.as_requests
    points, repeats = (
        [point for point in measured_points if _takes_requests(context, point.tuning)]
        for measured_points in (candidate_search.points, candidate_search.repeats)
    )
    return replace(candidate_search, best=scoring.best_point(points, repeats, objectives, constraints))


def _takes_requests(context: Context, tuning: Tuning) -> bool:
    """Whether a server with this configuration accepts the requests of the online sweep."""
    online = context.spec.performance.online
    return tuning.max_batch_size == 0 or tuning.max_batch_size >= (online.batch_size if online else 1)


def _tuned_candidate(
    context: Context, attempt: Attempt, base: RankedCandidate, candidate_search: CandidateSearch
) -> Candidate | None:
    """Return the candidate with the best configuration found; None: it is no better than the spec's own."""
    best = candidate_search.best
    selection = context.spec.selection
    (member,) = attempt.candidate.members
    if best is None or best.row is None or best.tuning == spec_tuning(context, member.model):
        return None
    choice = best_row([best.row], selection.objectives, selection.constraints.as_requests)
    is_same_distance = choice.distance == base.distance
    if choice.distance > base.distance or (is_same_distance and improvement(choice, base) <= noise(choice, base)):
        return None
    return Candidate(names.tuned_name(attempt.name), attempt.candidate.members, best.tuning)


def _convert_and_profile(
    context: Context, dump: Dump, search_progress: SearchProgress, candidates: Sequence[Candidate]
) -> SearchProgress:
    """Convert and profile the candidates that were found. If all of them fail, the object goes on without them."""
    if not candidates:
        return search_progress
    conversions = conversion_round(context, dump, candidates)
    with_conversions = _after_round(search_progress, search_progress.attempts, conversions)
    if not conversions.condition.status:
        return with_conversions
    return _after_round(with_conversions, search_progress.attempts, profile_round(context, dump, conversions.attempts))


def _after_round(search_progress: SearchProgress, other_attempts: tuple[Attempt, ...], round: Round) -> SearchProgress:
    """Return the searches after a stage of their candidates. ``other_attempts``: those that took no part in it."""
    is_unfinished = not (round.condition.status or round.has_failed)
    return replace(
        search_progress,
        effects=search_progress.effects + round.effects,
        attempts=other_attempts + round.attempts,
        waits=_as_search_condition(round.condition) if is_unfinished else None,
    )


def _searching_condition(context: Context, searches: Sequence[CandidateSearch], most: int) -> Statement:
    """Return the condition while a search goes on. ``most``: the measurements that all searches may spend."""
    current = searches[-1]
    pending = current.pending or Trouble(Reason.RUNNING, "")
    if pending.reason not in (Reason.RUNNING, Reason.WAITING):
        return Statement("Selected", False, pending.reason, pending.message)
    count = sum(each.measurements for each in searches)
    message = f"searching for a configuration of {current.candidate}: {count} of at most {most} measurements are done"
    if current.best is not None and current.best.row is not None:
        message += f"; best so far: {context.spec.selection.constraints.row_words(current.best.row)}"
    if current.job:
        message += f"; the log of Job {current.job} has a line for each new measurement"
    return Statement("Selected", False, Reason.RUNNING, message)


def _as_search_condition(condition: Statement) -> Statement:
    """Turn the condition of another stage into that of the search it is part of."""
    return Statement("Selected", False, condition.reason, f"candidates found by the search: {condition.message}")
