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
from triton_converters.contract.results import SearchEnd, SearchPoint, Tuning
from triton_converters.contract.search_parts import LEAST_MEASUREMENTS, LONGEST_OVERRUN_SECONDS, excess
from triton_converters.contract.text import shortened
from triton_operator import names
from triton_operator.api.duration import seconds
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.combination import Combination
from triton_operator.candidates.ranking import Choice, best_row, improvement, noise
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.convert import configuration
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.run import run, waiting
from triton_operator.jobs.search import Budget, search_work
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.contenders import ranked
from triton_operator.stages.convert import converted
from triton_operator.stages.profile import is_measuring, profiled
from triton_operator.stages.progress import Round
from triton_operator.stages.reference import Referred
from triton_operator.stages.repairing import damage

SEARCHED = 2
"""How many of the best candidates are searched: the first is not always the one with the most to gain."""
SPENT = {
    SearchEnd.MEASUREMENTS_SPENT: " because its measurements are spent",
    SearchEnd.TIME_SPENT: " because its time is spent",
}
"""Why a search ended before it was done, in words."""


@dataclass(frozen=True)
class CandidateSearch:
    """What is known of the search for one candidate's best configuration."""

    candidate: str
    points: tuple[SearchPoint, ...] = ()
    """The points of all parts so far, in the order of their measurement."""
    repeats: tuple[SearchPoint, ...] = ()
    """The best points, measured again at the end."""
    size: int = 0
    """Number of points in the whole space; 0: not known yet."""
    seconds: float = 0.0
    """Time spent measuring."""
    ended: SearchEnd = SearchEnd.GOES_ON
    pending: Trouble | None = None
    """What the search waits for, while it goes on."""
    job: str = ""
    """Name of the Job that measures now; empty: none does."""
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
            words = shortened(self.failure.message, 200)
            return f"the search for a configuration of {self.candidate} failed ({self.failure.reason}: {words})"
        measured = f"{self.measurements} measurements in a space of {self.size} points"
        ended = f"the search for a configuration of {self.candidate} ended after {measured}"
        return f"{ended}{SPENT.get(self.ended, '')}"


@dataclass(frozen=True)
class SearchProgress:
    """How far the searches came, and the candidates that they found."""

    attempts: tuple[Attempt, ...]
    """The profiled candidates, then the candidates that the searches found."""
    effects: Effects = field(default_factory=Effects)
    searches: tuple[CandidateSearch, ...] = ()
    waits: Statement | None = None
    """The condition while a search goes on, or a Job of a candidate that one found; None: all are done."""


@dataclass(frozen=True, kw_only=True)
class Searched(Referred):
    """The searches have begun, or none is asked for."""

    searches: tuple[CandidateSearch, ...]
    ranking: tuple[Choice, ...]
    """The candidates that passed every gate, from best to worst."""


def search(context: Context, progress: Referred) -> Searched:
    """Go on once every search has ended, and what it found has passed the gates or failed at one."""
    found = _found(context, progress.dump, progress.attempts)
    searched = progress.reached(
        Searched,
        attempts=found.attempts,
        effects=progress.effects + found.effects,
        searches=found.searches,
        ranking=tuple(ranked(context, found.attempts)),
    )
    return searched.waiting(found.waits) if found.waits else searched


def _found(context: Context, dump: Dump, profiled: tuple[Attempt, ...]) -> SearchProgress:
    """Search for the best candidates' configurations one after the other, then let what is better pass the gates."""
    limits = context.spec.selection.search
    if limits.mode == "None":
        return SearchProgress(profiled)
    leaders = ranked(context, profiled)[:SEARCHED]
    by_name = {attempt.name: attempt for attempt in profiled}
    budget, effects, searches = Budget(limits.measurements, ceil(seconds(limits.duration))), Effects(), []
    for number, leader in enumerate(leaders):
        share = budget.share(len(leaders) - number)
        if share.measurements < LEAST_MEASUREMENTS or share.seconds < 1:
            break
        found, more = _search(context, dump, by_name[leader.name], share)
        effects += more
        searches.append(found)
        if not found.ended:
            return SearchProgress(profiled, effects, tuple(searches), _waits(context, searches, limits.measurements))
        budget = budget.without(found.measurements, found.seconds)
    better = [
        candidate
        for found, leader in zip(searches, leaders[: len(searches)], strict=True)
        if (candidate := _tuned(context, by_name[leader.name], leader, found))
    ]
    return _proved(context, dump, SearchProgress(profiled, effects, tuple(searches)), better)


def _search(context: Context, dump: Dump, attempt: Attempt, budget: Budget) -> tuple[CandidateSearch, Effects]:
    """Return a candidate's search with the parts that are measured so far, and what it needs of the cluster."""
    known, effects = CandidateSearch(attempt.name), Effects()
    busy = is_measuring(context)
    for part in range(budget.measurements):
        work = search_work(context, dump, attempt, budget, part)
        this = run(context, work, start=not busy)
        effects += this.effects
        if this.failure is not None and this.failure.reason is Reason.REPOSITORY_DAMAGED:
            effects += damage(context, attempt.key, this.failure)
        if this.failure is not None:
            return _with_best(context, replace(known, ended=SearchEnd.FAILED, failure=this.failure)), effects
        result = this.result
        if result is None:
            pending = Trouble(Reason.WAITING, "the search waits for its turn")
            if this.active or context.spec.suspend:
                pending = Trouble(*waiting("the search", this, context))
            job = next(iter(this.effects.jobs), "") if this.active else ""
            return _with_best(context, replace(known, pending=pending, job=job)), effects
        # An earlier version's publisher let a client answer anything. What is beyond the bounds is not even looked at.
        if beyond := excess(result, known.measurements, budget.measurements):
            message = f"a Job of the search answered {beyond}; change spec.selection.search, and it is searched anew"
            failure = Trouble(Reason.CRASHED, message)
            return _with_best(context, replace(known, ended=SearchEnd.FAILED, failure=failure)), effects
        known = replace(
            known,
            points=known.points + result.points,
            repeats=result.repeats,
            size=result.size,
            seconds=min(max(0.0, result.seconds), budget.seconds + LONGEST_OVERRUN_SECONDS),
            ended=result.ended,
            records=(*known.records, work.key),
        )
        if known.ended:
            return _with_best(context, known), effects
    return _with_best(context, replace(known, ended=SearchEnd.MEASUREMENTS_SPENT)), effects


def _with_best(context: Context, known: CandidateSearch) -> CandidateSearch:
    selection = context.spec.selection
    objectives = tuple(each.asked() for each in selection.objectives)
    constraints = selection.constraints.asked
    points, repeats = (
        [point for point in measured if _takes_requests(context, point.tuning)]
        for measured in (known.points, known.repeats)
    )
    return replace(known, best=scoring.best_point(points, repeats, objectives, constraints))


def _takes_requests(context: Context, tuning: Tuning) -> bool:
    """Whether a server with this configuration accepts the requests of the online sweep."""
    online = context.spec.performance.online
    return tuning.max_batch_size == 0 or tuning.max_batch_size >= (online.batch_size if online else 1)


def _tuned(context: Context, attempt: Attempt, base: Choice, found: CandidateSearch) -> Combination | None:
    """The candidate with the configuration that was found; None where it is no better than the spec's own."""
    best, selection = found.best, context.spec.selection
    (member,) = attempt.candidate.members
    if best is None or best.row is None or best.tuning == configuration(context, member.model):
        return None
    choice = best_row([best.row], selection.objectives, selection.constraints.asked)
    same = choice.distance == base.distance
    if choice.distance > base.distance or (same and improvement(choice, base) <= noise(choice, base)):
        return None
    return Combination(names.tuned_name(attempt.name), attempt.candidate.members, best.tuning)


def _proved(context: Context, dump: Dump, found: SearchProgress, better: Sequence[Combination]) -> SearchProgress:
    """Convert and profile the candidates that were found. If all of them fail, the object goes on without them."""
    if not better:
        return found
    conversions = converted(context, dump, better)
    tuned = _after(found, found.attempts, conversions)
    if not conversions.condition.status:
        return tuned
    return _after(tuned, found.attempts, profiled(context, dump, conversions.attempts))


def _after(found: SearchProgress, others: tuple[Attempt, ...], round: Round) -> SearchProgress:
    """What was found after a stage; ``others``: the attempts that did not take part in it."""
    waits = not round.condition.status and round.condition.reason is not Reason.ALL_CANDIDATES_FAILED
    return replace(
        found,
        effects=found.effects + round.effects,
        attempts=others + round.attempts,
        waits=_of(round.condition) if waits else None,
    )


def _waits(context: Context, searches: Sequence[CandidateSearch], most: int) -> Statement:
    """The condition while a search goes on."""
    current = searches[-1]
    pending = current.pending or Trouble(Reason.RUNNING, "")
    if pending.reason not in (Reason.RUNNING, Reason.WAITING):
        return Statement("Selected", False, pending.reason, pending.message)
    measured = sum(each.measurements for each in searches)
    message = (
        f"searching for a configuration of {current.candidate}: {measured} of at most {most} measurements are done"
    )
    if current.best is not None and current.best.row is not None:
        message += f"; best so far: {context.spec.selection.constraints.told(current.best.row)}"
    if current.job:
        message += f"; the log of Job {current.job} has a line for each new measurement"
    return Statement("Selected", False, Reason.SEARCHING, message)


def _of(condition: Statement) -> Statement:
    """Turn the condition of another stage into that of the search it is part of."""
    reason = Reason.SEARCHING if condition.reason is Reason.RUNNING else condition.reason
    return Statement("Selected", False, reason, f"candidates found by the search: {condition.message}")
