"""The candidates that passed every gate, ranked by the sweeps of their profiles."""

from collections.abc import Sequence

from triton_converters.contract.results import Row
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import Candidate
from triton_operator.candidates.ranking import Contender, RankedCandidate, rank
from triton_operator.context import Context


def rank_candidates(context: Context, attempts: Sequence[Attempt]) -> list[RankedCandidate]:
    """Rank the candidates that passed by the spec's scenario, objectives and constraints.

    A candidate without measurements of that scenario is left out.
    """
    selection = context.spec.selection
    contenders = [
        Contender(each.name, judged_rows(context, each), _complexity(each.candidate))
        for each in attempts
        if each.passed
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
