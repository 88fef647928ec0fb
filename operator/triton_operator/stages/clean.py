"""Clean: when the history drops a state, a Job removes from the claim what no record names any more."""

from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.clean import MOST_NEIGHBOURS, clean_work
from triton_operator.jobs.run import next_try, run
from triton_operator.observed.history import History
from triton_operator.resources.claim import has_files_to_keep


def clean(context: Context, history: History) -> tuple[Effects, float | None]:
    """Run the Job for what was last dropped, once the drop is recorded: its pod then mounts the shorter record.

    Return the seconds until it is tried again too, if it failed by what passes by itself; None: it is not.

    The pod starts only if every ConfigMap exists, and there is no Job while an entry is unreadable: both may name files
    to keep. Nor is there one on a claim that was retained, until it is released: all that lies there is to be kept.
    """
    if history.dropped == 0 or history.dropped > context.observed.history.dropped or context.observed.unreadable:
        return Effects(), None
    if has_files_to_keep(context) or len(context.observed.neighbours) > MOST_NEIGHBOURS:
        return Effects(), None
    job_run = run(context, clean_work(context, history.dropped), repeats=True)
    return job_run.effects, next_try(context, [job_run])
