"""Select: choose the candidate to serve, and give a reason for every other one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.environments import differences
from triton_operator.candidates.ranking import Choice, comparison, improvement, percent, within_noise
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.remeasuring import unmet
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.search import Searched

NAMED = 3
"""How many candidates of the ranking a message names; the status has all."""


@dataclass(frozen=True)
class _Ranking:
    """The candidates that may be selected, from best to worst."""

    choices: Sequence[Choice]
    attempts: Mapping[str, Attempt]
    """All candidates by name, including those that are not in `choices`."""

    @property
    def best(self) -> Choice:
        return self.choices[0]

    def key(self, choice: Choice) -> str:
        return self.attempts[choice.name].key

    def is_revision(self, choice: Choice, key: str) -> bool:
        """Whether a candidate is the revision with the key, or that revision published anew."""
        return key in (self.key(choice), *self.attempts[choice.name].replaces)

    def of_revision(self, key: str) -> Choice | None:
        return next((choice for choice in self.choices if self.is_revision(choice, key)), None)

    def named(self, candidate: str) -> Choice | None:
        """The candidate of that name, or the one that a search made it of, if no search found it here."""
        return next(
            (each for called in (str, names.tuned_name) for each in self.choices if called(each.name) == candidate),
            None,
        )

    def __str__(self) -> str:
        """The best ones with their keys."""
        return ", ".join(f"{choice.name} {self.key(choice)}" for choice in self.choices[:NAMED])


@dataclass(frozen=True)
class _Decision:
    """Which candidate is selected and why, or why none is."""

    taken: Choice | None
    reason: Reason
    message: str


@dataclass(frozen=True, kw_only=True)
class Chosen(Searched):
    """A candidate is to serve."""

    target: Attempt


def choose(context: Context, progress: Searched) -> Searched:
    """Return Chosen if a candidate may serve; every other candidate gets its reason."""
    attempts, choices = progress.attempts, progress.ranking
    if not choices:
        scenario = context.spec.selection.scenario
        message = f"no candidate has a measurement of scenario {scenario}; add spec.performance.{scenario.lower()}"
        return progress.waiting(Statement("Selected", False, Reason.ALL_CANDIDATES_FAILED, message), stalled=True)
    ranking = _Ranking(choices, {attempt.name: attempt for attempt in attempts})
    decision = _decide(context, ranking)
    message = "; ".join([decision.message, *(search.outcome for search in progress.searches)])
    by_name = {choice.name: choice for choice in choices}
    judged = tuple(_judge(context, each, by_name.get(each.name), ranking.best, decision) for each in attempts)
    condition = Statement("Selected", decision.taken is not None, decision.reason, message)
    if decision.taken is None:
        stalled = decision.reason is not Reason.AWAITING_APPROVAL
        return replace(progress, attempts=judged).waiting(condition, _unmet(context, judged, decision), stalled=stalled)
    target = next(attempt for attempt in judged if attempt.state == "Selected")
    return progress.noting(condition).reached(Chosen, attempts=judged, target=target)


def _unmet(context: Context, attempts: Sequence[Attempt], decision: _Decision) -> Effects:
    """Have all candidates measured again at the next retry, if it is their figures that stall the object."""
    if decision.reason is not Reason.CONSTRAINTS_NOT_MET:
        return Effects()
    troubles = {each.profile_key: Trouble(decision.reason, each.message) for each in attempts if each.passed}
    return unmet(context, {record_name("profile", key): trouble for key, trouble in troubles.items()})


def _decide(context: Context, ranking: _Ranking) -> _Decision:
    """Decide between the candidates by the approval, by the one that serves, and by the constraints."""
    selection = context.spec.selection
    if selection.approval == "Manual" and selection.approved_revision:
        found = _approved(context, ranking, selection.approved_revision)
    else:
        found = _kept(context, ranking) or _Decision(ranking.best, Reason.SELECTED, _lead(context, ranking))
    choice = found.taken
    if choice is None:
        return found
    if choice.violation is not None:
        beyond = f"{choice.name} at {choice.load}: {selection.constraints.broken(choice.violation)}"
        if isfinite(choice.distance):
            beyond += f" ({choice.distance * 100:.1f} % beyond the bound)"
        if selection.fallback == "None":
            message = (
                f"no candidate meets every constraint; the closest is {beyond}; relax the constraint, add candidates,"
                " or set spec.selection.fallback: Closest"
            )
            if choice is not ranking.best:
                message = f"the approved candidate breaks a constraint: {beyond}; approve another candidate or relax it"
            return _Decision(None, Reason.CONSTRAINTS_NOT_MET, message)
        message = f"no candidate meets every constraint, so spec.selection.fallback selects the closest: {beyond}"
        found = _Decision(choice, Reason.CLOSEST_SELECTED, message)
    if selection.approval == "Automatic" or selection.approved_revision or _is_active(context, ranking, choice):
        return found
    return _awaiting(ranking, choice, found.message)


def _approved(context: Context, ranking: _Ranking, key: str) -> _Decision:
    """Decide for the approved revision only. The approval of one that served does not cover newer candidates."""
    choice = ranking.of_revision(key)
    if choice is not None:
        return _Decision(choice, Reason.APPROVED, f"approved: {_figures(context, choice)}")
    if key == context.active_revision or record_name("convert", key) in context.observed.history.records:
        return _awaiting(ranking, ranking.best, _lead(context, ranking))
    failed = next((attempt for attempt in ranking.attempts.values() if attempt.key == key), None)
    what = f"is {failed.name}, which is {failed.state}: {failed.message}" if failed else "is not the key of a candidate"
    message = f"spec.selection.approvedRevision {key} {what}; set it to one of these keys: {ranking}"
    return _Decision(None, Reason.APPROVAL_INVALID, message)


def _awaiting(ranking: _Ranking, choice: Choice, words: str) -> _Decision:
    approval = f"set spec.selection.approvedRevision: {ranking.key(choice)} to approve {choice.name}"
    message = f"{approval}; {words}; ranking: {ranking}"
    return _Decision(None, Reason.AWAITING_APPROVAL, message)


def _kept(context: Context, ranking: _Ranking) -> _Decision | None:
    """Keep the active candidate if no other one is better by the minimum; None if it is not kept.

    With another source it is the candidate of the same name: sources that take turns must not change the format.
    """
    minimum, best = context.spec.selection.min_improvement_percent, ranking.best
    active = context.triton_deployment.status.active
    current = ranking.of_revision(context.active_revision)
    if current is None and active is not None and context.active_server is not None:
        current = ranking.named(active.candidate)
    if not minimum or current is None or current.name == best.name or current.distance > best.distance:
        return None
    ours, theirs = (ranking.attempts[each.name].profile for each in (best, current))
    assert ours is not None
    assert theirs is not None
    obstacles = list(differences(ours.environment, theirs.environment))
    gain = improvement(best, current)
    if gain >= minimum and not obstacles:
        return None
    why = f"only {gain:.1f} % better, and spec.selection.minImprovementPercent is {minimum}"
    if obstacles:
        why = f"not comparable with it: {obstacles[0]}"
    words = f"{_figures(context, current)}; the active candidate is kept: {best.name} is {why}"
    return _Decision(current, Reason.KEPT, words)


def _is_active(context: Context, ranking: _Ranking, choice: Choice) -> bool:
    return ranking.is_revision(choice, context.active_revision)


def _lead(context: Context, ranking: _Ranking) -> str:
    """The best candidate's figures and its margin over the second."""
    text = _figures(context, ranking.best)
    if len(ranking.choices) == 1:
        return text
    second = ranking.choices[1]
    if second.violation is not None:
        return text
    gain = improvement(ranking.best, second)
    if gain >= 0 and not within_noise(ranking.best, second):
        return f"{text}; {percent(gain)} better than {second.name}"
    return f"{text}; {second.name} is {comparison(ranking.best, second)}"


def _figures(context: Context, choice: Choice) -> str:
    return f"{choice.name} at {choice.load}: {context.spec.selection.constraints.told(choice.row)}"


def _judge(context: Context, attempt: Attempt, choice: Choice | None, best: Choice, decision: _Decision) -> Attempt:
    """Return a candidate with the reason why it was selected, or why it was not."""
    if choice is None:
        return attempt
    if decision.taken is not None and choice.name == decision.taken.name:
        return attempt.now("Selected", Trouble(decision.reason, f"its best measurement is at {choice.load}"))
    if choice.violation is not None:
        broken = context.spec.selection.constraints.broken(choice.violation)
        message = f"its closest measurement ({choice.load}) breaks a constraint: {broken}"
        return attempt.now("Passed", Trouble(Reason.CONSTRAINTS_NOT_MET, message))
    if choice.name == best.name:
        waits = decision.reason is Reason.AWAITING_APPROVAL
        reason = Reason.AWAITING_APPROVAL if waits else Reason.PASSED
        return attempt.now("Passed", Trouble(reason, f"it has the best measurement, at {choice.load}"))
    return attempt.now("Passed", Trouble(Reason.NOT_BEST, comparison(best, choice)))
