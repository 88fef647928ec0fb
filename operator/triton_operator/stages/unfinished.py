"""What a stage tells of its Job as long as that has no result: it goes on, it failed, or it is tried again. Pure."""

from dataclasses import replace
from typing import Any, TypeVar

from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.passing import failed_seconds, seconds_until_due
from triton_operator.jobs.run import Run, waiting_reason
from triton_operator.stages.progress import Progress

P = TypeVar("P", bound=Progress)

STALLED_SECONDS = 60.0
"""The object is stalled once its work has failed for so long: longer than `kubectl apply` of many objects takes, and
shorter than a person waits before they ask."""


def await_result(
    context: Context, progress: P, kind: ConditionType, work: str, this: Run[Any], *, prefix: str = ""
) -> P:
    """Return the progress of a stage whose Job has no result yet.

    ``work``: what the Job is called in the words for its progress. ``prefix``: comes before the words of a failure.
    """
    failing = this.failing
    if failing is not None and (this.failure is not None or (this.active and this.pending is None)):
        # Also while the next try runs, so that the condition does not change with each of them.
        condition = Statement(kind, False, failing.reason, f"{prefix}{failing.message}; trying again")
        stalled_after = STALLED_SECONDS - failed_seconds(failing, context.now)
        later = [each for each in (stalled_after, seconds_until_due(failing, context.now)) if each > 0]
        waits = progress.wait_with(condition, this.effects, stalled=stalled_after <= 0)
        return replace(waits, again_after=min(later, default=None))
    if this.failure is not None:
        condition = Statement(kind, False, this.failure.reason, f"{prefix}{this.failure.message}")
        return progress.wait_with(condition, this.effects, stalled=True)
    reason, message = waiting_reason(work, this, context)
    return progress.wait_with(Statement(kind, False, reason, message), this.effects)
