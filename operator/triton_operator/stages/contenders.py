"""The candidates that passed every gate, ranked by the sweeps of their profiles.

Only figures of one environment are ranked. What was measured in another one is measured again, and left out where that
does not help.
"""

from collections.abc import Mapping, Sequence

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import Environment, Row
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate
from triton_operator.candidates.environments import differences
from triton_operator.candidates.ranking import Contender, RankedCandidate, rank
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.profile import profile_work
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.remeasuring import is_odd, record_odd_figures
from triton_operator.observed.trouble import Trouble

MOST_REPEATS = 2
"""How often a candidate is measured again because others were measured elsewhere: with two kinds of nodes, three tries
find the same kind seven times of eight."""


def rank_candidates(context: Context, attempts: Sequence[Attempt]) -> list[RankedCandidate]:
    """Rank the candidates that passed by the spec's scenario, objectives and constraints.

    A candidate without measurements of that scenario is left out, and so is one that was measured in another
    environment than those that are ranked.
    """
    left_out = not_comparable(context, attempts)
    selection = context.spec.selection
    contenders = [
        Contender(each.name, judged_rows(context, each), _complexity(each.candidate))
        for each in attempts
        if each.passed and each.name not in left_out
    ]
    return rank(contenders, selection.objectives, selection.constraints.as_requests)


def judged_rows(context: Context, attempt: Attempt) -> Sequence[Row]:
    """Return the measurements of the scenario that selection judges by; none without a profile."""
    if attempt.profile is None:
        return ()
    return attempt.profile.rows(context.spec.selection.scenario)


def _complexity(candidate: Candidate) -> tuple[int, ...]:
    """Return a sort key, smaller for simpler: the spec's own configuration, no accelerator, fp32, fewer instances."""
    own_instances = sum(member.model.config.instances for member in candidate.members)
    return (
        candidate.tuning is not None,
        candidate.accelerator != "none",
        candidate.precision != "fp32",
        candidate.tuning.instances if candidate.tuning else own_instances,
    )


def not_comparable(context: Context, attempts: Sequence[Attempt]) -> Mapping[str, str]:
    """Return the candidates whose figures are not those of the environment that counts, each with the difference.

    That of what serves counts, or else that of most candidates.
    """
    groups = _groups(attempts)
    if len(groups) < 2:
        return {}
    counts = max(groups, key=lambda group: (any(_serves(context, each) for each in group), len(group)))
    return _differences(counts, groups)


def measure_again(
    context: Context, dump: Dump, attempts: Sequence[Attempt], kept: Sequence[Attempt] = ()
) -> tuple[Effects, Statement] | None:
    """Have the candidates measured again that were measured elsewhere than most; None: there is none, or no try left.

    If that did not help, the nodes are other ones than before: then most are measured again. ``kept``: those that are
    measured no more.
    """
    groups = _groups(attempts)
    if len(groups) < 2:
        return None
    most = max(groups, key=len)
    others = [each for group in groups if group is not most for each in group]
    kept_names = {each.name for each in kept}
    for group in (others, most):
        due = [each for each in group if each.name not in kept_names and _repeats(context, dump, each) < MOST_REPEATS]
        if due:
            why = "; ".join(f"{name}: {difference}" for name, difference in _differences(most, groups).items())
            message = f"measured again, because figures of two environments are not comparable: {why}"
            trouble = Trouble(Reason.NOT_COMPARED, message)
            effects = record_odd_figures(context, {record_name("profile", each.profile_key): trouble for each in due})
            words = f"{', '.join(each.name for each in due)} {'is' if len(due) == 1 else 'are'} {message}"
            return effects, Statement("Selected", False, Reason.WAITING, words)
    return None


def _groups(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Return the candidates that passed, together with those that were measured in the same environment."""
    groups: list[list[Attempt]] = []
    for attempt in attempts:
        if not attempt.passed or attempt.profile is None:
            continue
        own = _environment(attempt)
        group = next((each for each in groups if not any(differences(own, _environment(each[0])))), None)
        if group is None:
            groups.append([attempt])
        else:
            group.append(attempt)
    return groups


def _differences(counts: Sequence[Attempt], groups: Sequence[Sequence[Attempt]]) -> dict[str, str]:
    """Return how the candidates of the other groups differ from those of one."""
    environment = _environment(counts[0])
    others = (each for group in groups if group is not counts for each in group)
    return {each.name: next(differences(_environment(each), environment)) for each in others}


def _environment(attempt: Attempt) -> Environment:
    assert attempt.profile is not None
    return attempt.profile.environment


def _repeats(context: Context, dump: Dump, attempt: Attempt) -> int:
    """Return how often a candidate was measured again, since the last retry, because others were measured elsewhere."""
    keys = profile_work(context, dump, attempt).replaces
    failures = [context.observed.failures[record_name("profile", key)] for key in keys]
    return sum(is_odd(context, each) for each in failures)


def _serves(context: Context, attempt: Attempt) -> bool:
    """Whether the active revision is the candidate's, or one of the same candidate from another source."""
    active = context.triton_deployment.status.active
    if context.active_revision in (attempt.key, *attempt.replaces):
        return True
    return active is not None and context.active_server is not None and active.candidate == attempt.name
