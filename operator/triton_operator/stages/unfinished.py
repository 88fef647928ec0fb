"""The progress of a stage whose Job has no result: the Job goes on, has failed, or is tried again. Pure."""

from dataclasses import replace
from typing import Any, TypeVar

from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.run import Run, waiting_reason
from triton_operator.jobs.transient import failed_seconds, seconds_until_due
from triton_operator.stages.progress import Progress

P = TypeVar("P", bound=Progress)

STALLED_SECONDS = 60.0
"""The object is stalled once its work has failed for so long: longer than `kubectl apply` of many objects takes, and
shorter than a person waits before they ask."""


def await_result(
    context: Context, progress: P, kind: ConditionType, work: str, job_run: Run[Any], *, prefix: str = ""
) -> P:
    """Return the progress of a stage whose Job has no result yet.

    ``work``: what the Job is called in the words for its progress. ``prefix``: comes before the words of a failure.
    """
    last_failure = job_run.failing
    if last_failure is not None and (job_run.failure is not None or (job_run.active and job_run.pending is None)):
        # Also while the next try runs, so that the condition does not change with each of them.
        condition = Statement(kind, False, last_failure.reason, f"{prefix}{last_failure.message}; trying again")
        stalled_after = STALLED_SECONDS - failed_seconds(last_failure, context.now)
        wait_seconds = [each for each in (stalled_after, seconds_until_due(last_failure, context.now)) if each > 0]
        progress = progress.wait_with(condition, job_run.effects, stalled=stalled_after <= 0)
        return replace(progress, again_after=min(wait_seconds, default=None))
    if job_run.failure is not None:
        condition = Statement(kind, False, job_run.failure.reason, f"{prefix}{job_run.failure.message}")
        return progress.wait_with(condition, job_run.effects, stalled=True)
    reason, message = waiting_reason(work, job_run, context)
    return progress.wait_with(Statement(kind, False, reason, message), job_run.effects)
