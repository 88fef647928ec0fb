"""Select: choose the candidate to serve, and give a reason for every other one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import RankedCandidate, comparison, improvement, is_within_noise, percent_words
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.remeasuring import record_unmet_figures
from triton_operator.observed.trouble import Trouble
from triton_operator.stages.contenders import not_comparable
from triton_operator.stages.search import Searched
from triton_operator.stages.staging import reason_to_stage

NAMED_CANDIDATES = 3
"""How many candidates of the ranking a message names, so that it stays short; the status has all."""


@dataclass(frozen=True)
class _Ranking:
    """The candidates that may be selected, from best to worst."""

    choices: Sequence[RankedCandidate]
    attempts: Mapping[str, Attempt]
    """All candidates by name, including those that are not in `choices`."""

    @property
    def best(self) -> RankedCandidate:
        return self.choices[0]

    def key(self, choice: RankedCandidate) -> str:
        return self.attempts[choice.name].key

    def is_revision(self, choice: RankedCandidate, key: str) -> bool:
        """Whether a candidate is the revision with the key, or that revision published anew."""
        return key in (self.key(choice), *self.attempts[choice.name].replaces)

    def of_revision(self, key: str) -> RankedCandidate | None:
        return next((choice for choice in self.choices if self.is_revision(choice, key)), None)

    def named(self, candidate: str) -> RankedCandidate | None:
        """Return the candidate of that name, or the one that it was tuned from, if no search has found it this time."""
        matches = (
            choice
            for name_of in (str, names.tuned_name)
            for choice in self.choices
            if name_of(choice.name) == candidate
        )
        return next(matches, None)

    def __str__(self) -> str:
        """Return the best candidates with their keys."""
        return ", ".join(f"{choice.name} {self.key(choice)}" for choice in self.choices[:NAMED_CANDIDATES])


@dataclass(frozen=True)
class _Decision:
    """Which candidate is selected and why, or why none is."""

    choice: RankedCandidate | None
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
        return progress.wait_with(Statement("Selected", False, Reason.ALL_CANDIDATES_FAILED, message), stalled=True)
    ranking = _Ranking(choices, {attempt.name: attempt for attempt in attempts})
    decision = _decide(context, ranking, reason_to_stage(context, progress.dump.result.signature))
    # All of them say the same.
    others = [each.message for each in attempts if each.reason is Reason.SAME_GRAPH][:1]
    left_out = _left_out(context, attempts)
    searches = (search.outcome for search in progress.searches)
    message = "; ".join([decision.message, *searches, *others, *_left_out_words(left_out)])
    by_name = {choice.name: choice for choice in choices}
    judged_attempts = tuple(
        each.in_state("Passed", left_out[each.name])
        if each.name in left_out
        else _with_reason(context, each, by_name.get(each.name), ranking.best, decision)
        for each in attempts
    )
    condition = Statement("Selected", decision.choice is not None, decision.reason, message)
    if decision.choice is None:
        stalled = decision.reason is not Reason.AWAITING_APPROVAL
        return replace(progress, attempts=judged_attempts).wait_with(
            condition, _measure_all_again(context, judged_attempts, decision), stalled=stalled
        )
    target = next(attempt for attempt in judged_attempts if attempt.state == "Selected")
    return progress.with_condition(condition).advance_to(Chosen, attempts=judged_attempts, target=target)


def _left_out(context: Context, attempts: Sequence[Attempt]) -> Mapping[str, Trouble]:
    """Return why candidates are not ranked that were measured in another environment, and again in vain."""
    field = "spec.gpu.product" if context.spec.gpu_count else "spec.pod.nodeSelector"
    advice = f"set {field} to nodes of one kind, then type: {context.retry_command}"
    return {
        name: Trouble(Reason.NOT_COMPARED, f"it was measured elsewhere than those that are ranked: {why}; {advice}")
        for name, why in not_comparable(context, attempts).items()
    }


def _left_out_words(left_out: Mapping[str, Trouble]) -> list[str]:
    return [f"not ranked: {name}: {trouble.message}" for name, trouble in left_out.items()][:NAMED_CANDIDATES]


def _measure_all_again(context: Context, attempts: Sequence[Attempt], decision: _Decision) -> Effects:
    """Have all candidates measured again at the next retry, if it is their figures that stall the object."""
    if decision.reason is not Reason.CONSTRAINTS_NOT_MET:
        return Effects()
    troubles = {each.profile_key: Trouble(decision.reason, each.message) for each in attempts if each.passed}
    return record_unmet_figures(context, {record_name("profile", key): trouble for key, trouble in troubles.items()})


def _decide(context: Context, ranking: _Ranking, staged: str) -> _Decision:
    """Decide between the candidates by the approval, by the active candidate, and by the constraints.

    ``staged``: why a person has to approve a version of the source, whatever `approval` says; empty: nobody has to.
    """
    selection = context.spec.selection
    is_manual = selection.approval == "Manual"
    approved = selection.approved_revision if is_manual else None
    if staged and selection.approved_revision and ranking.of_revision(selection.approved_revision) is not None:
        approved = selection.approved_revision
    if approved:
        decision = _decide_approved(context, ranking, approved)
    else:
        decision = _keep_active(context, ranking) or _Decision(
            ranking.best, Reason.SELECTED, _lead_words(context, ranking)
        )
    choice = decision.choice
    if choice is None:
        return decision
    if choice.violation is not None:
        violation = f"{choice.name} at {choice.load}: {selection.constraints.broken(choice.violation)}"
        if isfinite(choice.distance):
            violation += f" ({choice.distance * 100:.1f} % beyond the bound)"
        if selection.fallback == "None":
            message = (
                f"no candidate meets every constraint; the closest is {violation}; relax the constraint, add"
                " candidates, or set spec.selection.fallback: Closest"
            )
            if approved:
                message = (
                    f"the approved candidate breaks a constraint: {violation}; approve another candidate or relax it"
                )
            return _Decision(None, Reason.CONSTRAINTS_NOT_MET, message)
        if choice is ranking.best:
            message = (
                f"no candidate meets every constraint, so spec.selection.fallback selects the closest: {violation}"
            )
            decision = _Decision(choice, Reason.CLOSEST_SELECTED, message)
        else:
            words = f"{decision.message}; it breaks a constraint, which spec.selection.fallback allows: {violation}"
            decision = replace(decision, message=words)
    if not (is_manual or staged) or approved or _is_active(context, ranking, choice):
        return decision
    return _await_approval(ranking, choice, "; ".join(filter(None, (staged, decision.message))))


def _decide_approved(context: Context, ranking: _Ranking, key: str) -> _Decision:
    """Decide for the approved revision only. The approval of one that served does not cover newer candidates."""
    choice = ranking.of_revision(key)
    if choice is not None:
        return _Decision(choice, Reason.SELECTED, f"approved: {_figures_words(context, choice)}")
    if key == context.active_revision or record_name("convert", key) in context.observed.history.records:
        return _await_approval(ranking, ranking.best, _lead_words(context, ranking))
    attempt = next((attempt for attempt in ranking.attempts.values() if attempt.key == key), None)
    fault = (
        f"is {attempt.name}, which is {attempt.state}: {attempt.message}"
        if attempt
        else "is not the key of a candidate"
    )
    message = f"spec.selection.approvedRevision {key} {fault}; set it to one of these keys: {ranking}"
    return _Decision(None, Reason.APPROVAL_INVALID, message)


def _await_approval(ranking: _Ranking, choice: RankedCandidate, reason_words: str) -> _Decision:
    approval = f"set spec.selection.approvedRevision: {ranking.key(choice)} to approve {choice.name}"
    message = f"{approval}; {reason_words}; ranking: {ranking}"
    return _Decision(None, Reason.AWAITING_APPROVAL, message)


def _keep_active(context: Context, ranking: _Ranking) -> _Decision | None:
    """Keep the active candidate if no other one is better by the minimum; None: it is not kept.

    After a change of the source, the candidate of the same name counts as the active one: otherwise each new source
    could change the format by noise alone.
    """
    minimum = context.spec.selection.min_improvement_percent
    best = ranking.best
    current = _active(context, ranking)
    if not minimum or current is None or current.name == best.name or current.distance > best.distance:
        return None
    gain = improvement(best, current)
    if gain >= minimum:
        return None
    objection = f"only {max(gain, 0.0):.1f} % better, and spec.selection.minImprovementPercent is {minimum}"
    message = f"{_figures_words(context, current)}; the active candidate is kept: {best.name} is {objection}"
    return _Decision(current, Reason.KEPT, message)


def _active(context: Context, ranking: _Ranking) -> RankedCandidate | None:
    """Return the candidate that serves, or the one of its name from another source; None: neither is ranked."""
    active = context.triton_deployment.status.active
    current = ranking.of_revision(context.active_revision)
    if current is None and active is not None and context.active_server is not None:
        return ranking.named(active.candidate)
    return current


def _is_active(context: Context, ranking: _Ranking, choice: RankedCandidate) -> bool:
    return ranking.is_revision(choice, context.active_revision)


def _lead_words(context: Context, ranking: _Ranking) -> str:
    """Return the best candidate's figures and its margin over the second, in words."""
    figures = _figures_words(context, ranking.best)
    if len(ranking.choices) == 1:
        return figures
    second = ranking.choices[1]
    if second.violation is not None:
        return figures
    gain = improvement(ranking.best, second)
    if gain >= 0 and not is_within_noise(ranking.best, second):
        return f"{figures}; {percent_words(gain)} better than {second.name}"
    return f"{figures}; {second.name} is {comparison(ranking.best, second)}"


def _figures_words(context: Context, choice: RankedCandidate) -> str:
    return f"{choice.name} at {choice.load}: {context.spec.selection.constraints.row_words(choice.row)}"


def _with_reason(
    context: Context, attempt: Attempt, choice: RankedCandidate | None, best: RankedCandidate, decision: _Decision
) -> Attempt:
    """Return a candidate with the reason why it was selected, or why it was not."""
    if choice is None:
        return attempt
    if decision.choice is not None and choice.name == decision.choice.name:
        return attempt.in_state("Selected", Trouble(decision.reason, f"its best measurement is at {choice.load}"))
    if choice.violation is not None:
        broken = context.spec.selection.constraints.broken(choice.violation)
        message = f"its closest measurement ({choice.load}) breaks a constraint: {broken}"
        return attempt.in_state("Passed", Trouble(Reason.CONSTRAINTS_NOT_MET, message))
    if choice.name == best.name:
        awaits_approval = decision.reason is Reason.AWAITING_APPROVAL
        reason = Reason.AWAITING_APPROVAL if awaits_approval else Reason.PASSED
        return attempt.in_state("Passed", Trouble(reason, f"it has the best measurement, at {choice.load}"))
    return attempt.in_state("Passed", Trouble(Reason.NOT_BEST, comparison(best, choice)))
