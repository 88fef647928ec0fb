"""The ConfigMap that records what Jobs answered, so that a Job that is gone need not run again."""

from collections.abc import Mapping
from typing import Any

from triton_converters.contract.envelope import Outcome
from triton_converters.contract.records import CLAIM, FAILURE, FINISHED, HISTORY, record_name
from triton_operator import names
from triton_operator.context import Context
from triton_operator.observed.history import History
from triton_operator.observed.pods import Trouble

KEPT = 96
"""Records that are kept, newest first, beyond those that the plan, what serves and the history need."""
ROOM_BYTES = 900_000
"""Of all records. Most take 4 KB at the most and a ConfigMap takes 1 MiB; the rest is for names and failures."""


def results(context: Context, needed: set[str], failures: Mapping[str, Trouble], history: History) -> dict[str, Any]:
    """``needed``: names of the plan's records. ``failures`` by Job's name: of Jobs that exist."""
    records, claim = context.observed.records, context.observed.claim
    # While the claim is missing, the results still belong to the one that was there: the next one does not have them.
    uid = claim["metadata"]["uid"] if claim is not None else context.observed.recorded_claim
    # What cannot be read here, a newer operator may have written, which needs what it names.
    data = {**context.observed.unreadable, **({CLAIM: uid} if uid else {})}
    if history.served:
        data[HISTORY] = history.to_json()
    for name in sorted(_kept(context, needed, history)):
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


def _kept(context: Context, needed: set[str], history: History) -> set[str]:
    """Names of the records that are written: those of the plan and of what serves whole, then what there is room for.

    A record that is not written is no mark any more: a neighbour's clean Job relies on it.
    """
    records = context.observed.records
    kept = records.keys() & (needed | {record_name("convert", context.serving_revision)})
    before = [name for state in history.served for name in state.records if name in records]
    others = sorted(records.keys() - kept - set(before), key=lambda name: (records[name].finished_at, name))[::-1]
    if history.dropped > context.observed.history.dropped:
        # What is about to be taken off the claim must not be counted on any more.
        others = []
    taken = [*(records[name].text for name in kept), *context.observed.unreadable.values()]
    room = ROOM_BYTES - sum(len(text.encode()) for text in taken)
    for name in dict.fromkeys([*before, *others[:KEPT]]):
        room -= 0 if name in kept else len(records[name].text.encode())
        if room < 0:
            break
        kept.add(name)
    return kept
