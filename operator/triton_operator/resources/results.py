"""The ConfigMap that records what Jobs answered, so that a Job that is gone need not run again."""

from collections.abc import Mapping
from typing import Any

from triton_converters.result import Outcome
from triton_operator import names
from triton_operator.context import Context
from triton_operator.history import History
from triton_operator.observed import CLAIM, FAILURE, FINISHED, HISTORY
from triton_operator.pod_trouble import Trouble

KEPT = 96
"""Records that are kept beyond those the plan needs, newest first: 4 KB each, a ConfigMap holds 1 MiB."""


def results(context: Context, needed: set[str], failures: Mapping[str, Trouble], history: History) -> dict[str, Any]:
    """``needed``: names of the plan's records. ``failures`` by Job's name: of Jobs that exist."""
    records = context.observed.records
    others = sorted(records.keys() - needed, key=lambda name: (records[name].finished_at, name), reverse=True)
    if history.dropped > context.observed.history.dropped:
        # What is about to be taken off the claim must not be counted on any more.
        others = [name for name in others if name in history.records]
    kept = [name for name in records if name in needed] + others[:KEPT]
    claim = context.observed.claim
    # While the claim is missing, the results still belong to the one that was there: the next one does not have them.
    uid = claim["metadata"]["uid"] if claim is not None else context.observed.recorded_claim
    data = {CLAIM: uid} if uid else {}
    if history.served:
        data[HISTORY] = history.to_json()
    for name in sorted(kept):
        data[name] = records[name].text
        data[FINISHED + name] = records[name].finished_at
    for job, trouble in sorted(failures.items()):
        data[FAILURE + job] = Outcome("failure", job, None, trouble.reason, trouble.message).to_json()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(names.results(context.name), "results"),
        "data": data,
    }
