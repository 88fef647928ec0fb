"""The ConfigMap that records the Jobs' results, so that a Job that is gone need not run again."""

from collections.abc import Iterable, Mapping
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import (
    ACTIVE,
    CLAIM,
    DAMAGED,
    FAILURE,
    FINISHED,
    HISTORY,
    IMAGE,
    SOAK,
    record_name,
)
from triton_operator import names
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.history import History
from triton_operator.observed.promotion import Promotion

KEPT = 96
"""How many more records are kept, newest first, than the plan, the active revision and the history need."""
KEPT_DAMAGES = 32
"""How many damaged revisions are remembered. One that is forgotten is found again when a server starts on it."""
KEPT_PROMOTIONS = 8
"""How many revisions that failed their soak are remembered, newest first. One that is forgotten may be tried again."""
ROOM_BYTES = 900_000
"""Room for all records. Most take 4 KB at most, and a ConfigMap holds 1 MiB; the rest is for names and failures."""


def results_config_map(context: Context, effects: Effects, history: History) -> dict[str, Any]:
    """The ConfigMap with what was recorded and is still needed, and what the pass found out.

    ``effects``: the pass's; without an active Deployment in them, the recorded one stays. ``history``: as it is from
    this pass on.
    """
    needed = set(effects.needed)
    records = context.observed.records
    # A newer operator may have written what this one cannot read, and may need what it names.
    data = {**context.observed.unreadable, **({CLAIM: claim} if (claim := _claim(context)) else {})}
    if history.states:
        data[HISTORY] = history.to_json()
    moves = _promotions(context, effects.promotions)
    if (recorded := effects.active_record or context.observed.active_record) is not None:
        moves[ACTIVE] = recorded.to_json()
    data |= moves
    kept = _kept(context, needed, history, [data.get(HISTORY, ""), *moves.values()])
    # What the plan does not read was not judged anew.
    others = {name: failure for name, failure in context.observed.failures.items() if name in kept - needed}
    for name in sorted(kept):
        data[name] = records[name].text
        data[FINISHED + name] = records[name].finished_at
        if records[name].image_id:
            data[IMAGE + name] = records[name].image_id
    for name, failure in sorted({**others, **effects.failures}.items()):
        data[FAILURE + name] = failure.to_json()
    # What was recorded first stays: a pod that tries again says the same with another time.
    remembered = {**effects.damaged, **context.observed.damaged}
    for key in sorted(remembered, key=lambda key: (remembered[key].at, key))[-KEPT_DAMAGES:]:
        data[DAMAGED + key] = remembered[key].to_json()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(names.results(context.name), "results"),
        "data": data,
    }


def _claim(context: Context) -> str:
    """Name and uid of the claim that has the results. While it is missing, they belong to the one that had them."""
    claim, recorded = context.observed.claim, context.observed.recorded_claim
    if claim is not None:
        return f"{context.claim_name}/{claim['metadata']['uid']}"
    return recorded if recorded.startswith(f"{context.claim_name}/") else ""


def _promotions(context: Context, promotions: Mapping[str, Promotion]) -> dict[str, str]:
    """The entries of the changes that matter: those to a Deployment that is there, and those that failed."""
    known, there = (
        {**context.observed.promotions, **promotions},
        {each.uid for each in context.observed.servers.values()},
    )
    failed = [uid for uid, promotion in known.items() if promotion.reason is Reason.SOAK_FAILED]
    kept = there | set(sorted(failed, key=lambda uid: (known[uid].at, uid))[-KEPT_PROMOTIONS:])
    return {SOAK + uid: promotion.to_json() for uid, promotion in sorted(known.items()) if uid in kept}


def _kept(context: Context, needed: set[str], history: History, entries: Iterable[str]) -> set[str]:
    """Names of the records to write: all of the plan and the active revision, then as many others as fit.

    ``entries``: texts of entries that need room too.

    A record that is not written no longer marks its files as used; the clean Jobs of other objects rely on that.
    """
    records = context.observed.records
    kept = records.keys() & (needed | {record_name("convert", context.active_revision)})
    before = [name for state in history.states for name in state.records if name in records]
    others = sorted(records.keys() - kept - set(before), key=lambda name: (records[name].finished_at, name))[::-1]
    if history.dropped > context.observed.history.dropped:
        # The clean Job is about to remove their files from the claim.
        others = []
    taken = [*(records[name].text for name in kept), *context.observed.unreadable.values(), *entries]
    room = ROOM_BYTES - sum(len(text.encode()) for text in taken)
    for name in dict.fromkeys([*before, *others[:KEPT]]):
        room -= 0 if name in kept else len(records[name].text.encode())
        if room < 0:
            break
        kept.add(name)
    return kept
