"""The conditions of what the user should know of and may accept: they are there only while they hold. Pure."""

from collections.abc import Iterator

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import HISTORY
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.clean import MOST_NEIGHBOURS
from triton_operator.names import results
from triton_operator.observed.trouble import Trouble

NAMED_NEIGHBOURS = 3
"""How many other objects on the claim a message names: enough to find them, and it stays one line."""
NAMED_ENTRIES = 3
"""How many entries of the results a message names, for the same reason."""


def risk_notices(context: Context) -> Iterator[Statement]:
    """The risks that the user should know of and may accept: a claim that is deleted, or that others use."""
    yield from terminating_notice(context)
    yield from _unreadable_notice(context)
    neighbours = context.observed.neighbours
    if neighbours:
        # No number: it would change the statuses of all whenever one comes or goes.
        more = " and others" if len(neighbours) > NAMED_NEIGHBOURS else ""
        users = ", ".join(neighbours[:NAMED_NEIGHBOURS]) + more
        message = (
            f"claim {context.claim_name} is also used by {users}, so these TritonDeployments have to trust each other:"
            " one can fill the claim of all; if they should not, let each have its own claim"
        )
        if len(neighbours) > MOST_NEIGHBOURS:
            message += f"; nothing is cleaned from it, because more than {MOST_NEIGHBOURS} others use it"
        elif (trouble := _cleaning_trouble(context)) is not None:
            message += f"; it is not cleaned: {trouble.message}"
        yield Statement("ClaimShared", True, Reason.SHARED_CLAIM, message)


def _cleaning_trouble(context: Context) -> Trouble | None:
    """What keeps the Job from running that cleans the claim, such as the lost records of another object on it."""
    jobs = (each for each in context.observed.jobs.values() if each.stage == "clean")
    return next((each.pending for each in jobs if each.pending is not None), None)


def terminating_notice(context: Context) -> Iterator[Statement]:
    """The notice that the claim is being deleted, if it is."""
    if context.observed.claim_terminates:
        claim = context.claim_name
        message = (
            f"PersistentVolumeClaim {claim} is being deleted: it goes with the last pod that has it, and all files and"
            " results with it. To save them, take a VolumeSnapshot now, or set the reclaim policy of its"
            " PersistentVolume to Retain. The operator deletes its own ended Jobs, whose pods hold the claim, starts no"
            " other, and makes everything again on a new claim"
        )
        yield Statement("ClaimTerminating", True, Reason.CLAIM_TERMINATING, message)


def _unreadable_notice(context: Context) -> Iterator[Statement]:
    """The notice that entries of the results cannot be read, if there are any."""
    entries = list(context.observed.unreadable)
    if not entries:
        return
    config_map, others = results(context.name), len(entries) - NAMED_ENTRIES
    named = ", ".join(entries[:NAMED_ENTRIES]) + (f" and {others} more" if others > 0 else "")
    lost = "; no revision but the active one can be named, and none is added" if HISTORY in entries else ""
    message = (
        f"ConfigMap {config_map} has entries that cannot be read: {named}. Nothing is cleaned from the claim until they"
        f" are put back or gone{lost}. Put them back from a backup, or go back to the operator's version that wrote"
        f" them. To forget them, type: kubectl edit configmap {config_map} --namespace {context.namespace}"
    )
    yield Statement("RecordsUnreadable", True, Reason.RECORDS_UNREADABLE, message)
