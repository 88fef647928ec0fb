"""Select: the best of the candidates that passed, and a reason for each other."""

from collections.abc import Sequence

from triton_converters.reasons import Reason
from triton_converters.result import Row
from triton_operator.attempt import Attempt
from triton_operator.context import Context
from triton_operator.pod_trouble import Trouble
from triton_operator.selection import Choice, gain, rank
from triton_operator.stages.step import Verdict


def choose(context: Context, attempts: Sequence[Attempt]) -> tuple[Verdict, tuple[Attempt, ...], list[Choice]]:
    """The condition, every candidate with its reason, and the ranking; the first attempt of state Selected is taken."""
    selection = context.spec.selection
    rows = [(each.name, judged_rows(context, each)) for each in attempts if each.passed]
    ranking = rank(rows, selection.objectives, selection.constraints)
    if not ranking:
        message = (
            f"no candidate has a row of scenario {selection.scenario}: add performance.{selection.scenario.lower()}"
        )
        return Verdict("Selected", False, Reason.ALL_CANDIDATES_FAILED, message), tuple(attempts), ranking
    best = ranking[0]
    by_name = {choice.name: choice for choice in ranking}
    judged = tuple(_judge(each, by_name.get(each.name), best) for each in attempts)
    if best.violation is not None:
        message = (
            f"no candidate meets every constraint; the closest is {best.name} at {best.load}: {best.violation}"
            f" ({best.violation.distance * 100:.1f} % beyond); relax the constraint or add candidates"
        )
        return Verdict("Selected", False, Reason.CONSTRAINTS_NOT_MET, message), judged, ranking
    message = f"{best.name} at {best.load}: {best.row.throughput:g} inferences/s, p99 {best.row.p99} us"
    return Verdict("Selected", True, Reason.SELECTED, message), judged, ranking


def judged_rows(context: Context, attempt: Attempt) -> Sequence[Row]:
    """The rows of the judged scenario."""
    if attempt.profile is None:
        return ()
    return attempt.profile.online if context.spec.selection.scenario == "Online" else attempt.profile.offline


def _judge(attempt: Attempt, choice: Choice | None, best: Choice) -> Attempt:
    if choice is None:
        return attempt
    if choice.violation is not None:
        message = f"its closest row ({choice.load}) has {choice.violation}"
        return attempt.now("Passed", Trouble(Reason.CONSTRAINTS_NOT_MET, message))
    if choice.name == best.name:
        return attempt.now("Selected", Trouble(Reason.SELECTED, f"the best row: {choice.load}"))
    return attempt.now("Passed", Trouble(Reason.NOT_BEST, gain(best, choice)))
