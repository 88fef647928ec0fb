"""Clean: once a state that served is one too many, a Job removes from the claim what no record names any more."""

from triton_converters.contract import layout
from triton_converters.contract.request import CleanRequest
from triton_operator import names
from triton_operator.context import Context
from triton_operator.observed.history import History
from triton_operator.resources.jobs import Work
from triton_operator.stages.step import Effects, run

MINIMUM_AGE_SECONDS = 600
"""A Job's answer is recorded seconds after it ended, where there is an operator; and there is where this Job starts."""
MINIMUM_TEMPORARY_AGE_SECONDS = 86400
"""The longest activeDeadlineSeconds of any Job that may be writing."""
DEADLINE_SECONDS = 3600


def clean(context: Context, history: History) -> Effects:
    """The Job for what was last dropped, once that is recorded: its pod sees the records as they are then.

    It starts only where each ConfigMap exists and none of its entries is unreadable: what it names must be known.
    """
    if history.dropped == 0 or history.dropped > context.observed.history.dropped or context.observed.unreadable:
        return Effects()
    key = names.result_key("clean", context.deployment.uid, history.dropped)
    marked = (context.name, *context.observed.neighbours)
    work = Work(
        stage="clean",
        key=key,
        request=CleanRequest(key, MINIMUM_AGE_SECONDS, MINIMUM_TEMPORARY_AGE_SECONDS),
        deadline_seconds=DEADLINE_SECONDS,
        volumes=tuple(
            {"name": f"marks-{number}", "configMap": {"name": names.results(name)}}
            for number, name in enumerate(marked)
        ),
        mounts=tuple(
            {"name": f"marks-{number}", "mountPath": str(layout.MARKS_MOUNT / name), "readOnly": True}
            for number, name in enumerate(marked)
        ),
    )
    return run(context, work).effects
