"""The Job that removes from the claim what no record names any more."""

from triton_converters.contract import layout
from triton_converters.contract.results import CleanResult
from triton_converters.contract.upkeep_requests import CleanRequest
from triton_operator import names
from triton_operator.context import Context
from triton_operator.resources.work import Plain, Work

MINIMUM_AGE_SECONDS = 600
"""Results younger than this stay. A running operator records a Job's answer seconds after the Job ended."""
MINIMUM_TEMPORARY_AGE_SECONDS = 86400
"""Temporary files younger than this stay: the longest activeDeadlineSeconds of a pod that may be writing."""
MOST_NEIGHBOURS = 1000
"""On a claim of more objects nothing is cleaned: with a volume for each, the Job would be larger than any that the
operator takes in (`packing.LARGEST_BYTES`), and it would make the Job again for ever."""
DEADLINE_SECONDS = 3600
"""How long a Job may clean: to walk a claim with many large directories over a network takes minutes, never an hour."""


def clean_work(context: Context, dropped: int) -> Work[CleanRequest, CleanResult]:
    """Return the work for the drop of that number. It is done once, whoever else uses the claim by then."""
    request = CleanRequest("", MINIMUM_AGE_SECONDS, MINIMUM_TEMPORARY_AGE_SECONDS)
    request = names.request_with_key("clean", request, dropped, context.triton_deployment.uid)
    owners = (context.name, *context.observed.neighbours)
    return Work(
        stage="clean",
        request=request,
        deadline_seconds=DEADLINE_SECONDS,
        shape=Plain(
            volumes=tuple(
                {"name": f"marks-{number}", "configMap": {"name": names.results(name)}}
                for number, name in enumerate(owners)
            ),
            mounts=tuple(
                {"name": f"marks-{number}", "mountPath": str(layout.MARKS_MOUNT / name), "readOnly": True}
                for number, name in enumerate(owners)
            ),
        ),
    )
