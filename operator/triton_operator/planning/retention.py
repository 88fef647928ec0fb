"""What the results ConfigMap keeps of all that was recorded, and what it lets go once its room is spent. Pure.

| Entry | Is kept |
|---|---|
| a result that the plan or the active revision needs | always |
| a result that a state of the history needs | while there is room, the newest state first |
| another result | while there is room, the newest first, and until files leave the claim |
| a failure | while the plan reads it, or its result is kept |
| what a look found | once it is told in the entry `following` |
| a damaged revision, a failed soak | the newest |
| a change of the active revision | while its Deployment is there, or active |
| what cannot be read | always: a newer operator may have written it, and may need what it names |
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.entries import Entries
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.history import History
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.record import Record

KEPT = 96
"""How many more records are kept, newest first, than the plan, the active revision and the history need."""
KEPT_DAMAGES = 32
"""How many damaged revisions are remembered. One that is forgotten is found again when a server starts on it."""
KEPT_PROMOTIONS = 8
"""How many revisions that failed their soak are remembered, newest first. One that is forgotten may be tried again."""
ROOM_BYTES = 900_000
"""Room for all records. Most take 4 KB at most, and a ConfigMap holds 1 MiB; the rest is for names and failures."""


def retained(context: Context, effects: Effects, history: History) -> Entries:
    """Return what is recorded from this pass on: what still matters of what was recorded, and what the pass found out.

    ``effects``: the pass's; without an active Deployment in them, the recorded one stays. ``history``: as it is from
    this pass on.
    """
    observed = context.observed
    entries = Entries(
        damaged=_damaged(context, effects),
        promotions=_promotions(context, effects.promotions),
        active_record=effects.active_record or observed.active_record,
        unreadable=observed.unreadable,
        recorded_claim=_claim(context),
        history=history,
        following=effects.following or observed.following,
    )
    records = _records(context, effects, history, _texts(entries))
    return replace(entries, records=records, failures=_failures(context, effects, records))


def _claim(context: Context) -> str:
    """Name and uid of the claim that has the results. While it is missing, they belong to the one that had them."""
    claim, recorded = context.observed.claim, context.observed.recorded_claim
    if claim is not None:
        return f"{context.claim_name}/{claim['metadata']['uid']}"
    return recorded if recorded.startswith(f"{context.claim_name}/") else ""


def _promotions(context: Context, new: Mapping[str, Promotion]) -> Mapping[str, Promotion]:
    """The changes of the active revision that matter: to a Deployment that is there or active, or failed."""
    known = {**context.observed.promotions, **new}
    # The active one is made again where somebody deleted it.
    there = context.observed.servers.keys() | {context.active_server}
    failed = [name for name, promotion in known.items() if promotion.reason is Reason.SOAK_FAILED]
    kept = there | set(sorted(failed, key=lambda name: (known[name].at, name))[-KEPT_PROMOTIONS:])
    return {name: known[name] for name in sorted(known) if name in kept}


def _damaged(context: Context, effects: Effects) -> Mapping[str, Damage]:
    """The damaged revisions. What was recorded first stays: a pod that tries again says the same with another time."""
    known = {**effects.damaged, **context.observed.damaged}
    return {key: known[key] for key in sorted(known, key=lambda key: (known[key].at, key))[-KEPT_DAMAGES:]}


def _failures(context: Context, effects: Effects, records: Mapping[str, Record]) -> Mapping[str, Failure]:
    """The failures of the plan, and those of the records that it does not read: these were not judged anew."""
    others = records.keys() - effects.needed
    known = {name: failure for name, failure in context.observed.failures.items() if name in others}
    return dict(sorted({**known, **effects.failures}.items()))


def _texts(entries: Entries) -> Iterator[str]:
    """Yield the texts of the entries that need room besides the records."""
    yield from entries.unreadable.values()
    yield from (each.to_json() for each in entries.promotions.values())
    if entries.active_record is not None:
        yield entries.active_record.to_json()
    if entries.history.states:
        yield entries.history.to_json()
    if entries.following is not None:
        yield entries.following.to_json()


def _records(context: Context, effects: Effects, history: History, texts: Iterable[str]) -> Mapping[str, Record]:
    """The records to keep: all of the plan and the active revision, then as many others as fit beside the texts.

    A record that is not written no longer marks its files as used; the clean Jobs of other objects rely on that.
    """
    # What a look found is told apart from its record, which its Job alone has.
    records = {name: each for name, each in context.observed.records.items() if each.outcome.stage != "look"}
    kept = records.keys() & (effects.needed | {record_name("convert", context.active_revision)})
    before = [name for state in history.states for name in state.records if name in records]
    others = sorted(records.keys() - kept - set(before), key=lambda name: (records[name].finished_at, name))[::-1]
    if history.dropped > context.observed.history.dropped:
        # The clean Job is about to remove their files from the claim.
        others = []
    room = ROOM_BYTES - sum(len(text.encode()) for text in [*(records[name].text for name in kept), *texts])
    for name in dict.fromkeys([*before, *others[:KEPT]]):
        room -= 0 if name in kept else len(records[name].text.encode())
        if room < 0:
            break
        kept.add(name)
    return {name: records[name] for name in sorted(kept)}
