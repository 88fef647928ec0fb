"""Says which revision an approval names. Pure."""

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import CandidateStatus
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject

SELECTABLE = ("Passed", "Selected")
"""The states of candidates that may serve."""


def approved_revision(subject: Subject, name: str | None) -> CandidateStatus:
    """Return the candidate to approve. Raises SubjectError if there is none, or nothing waits for an approval.

    ``name``: of a candidate, or the key of its revision; None: the one that would be selected.
    """
    whose = f"TritonDeployment {subject.name}"
    if subject.spec.selection.approval != "Manual":
        raise SubjectError(f"{whose} needs no approval: spec.selection.approval is {subject.spec.selection.approval}")
    candidates = [each for each in subject.status.candidates if each.state in SELECTABLE and each.revision]
    if name is None:
        waiting = [each for each in candidates if each.reason == Reason.AWAITING_APPROVAL]
        if not waiting:
            condition = subject.newer_condition or subject.condition("Ready")
            state = f"it is at {condition.reason}" if condition else "the operator has not seen it yet"
            raise SubjectError(f"{whose} does not wait for an approval: {state}. To approve a candidate, name it")
        return waiting[0]
    found = [each for each in candidates if name in (each.name, each.revision)]
    if not found:
        names = ", ".join(f"{each.name} ({each.revision})" for each in candidates) or "none has passed"
        raise SubjectError(f"{whose} has no candidate {name} that passed; name one of these: {names}")
    if len({each.revision for each in found}) > 1:
        # Its author chose the name of the one, and whoever approves may mean the other.
        keys = " or ".join(each.revision for each in found if each.revision != name)
        raise SubjectError(
            f"{whose} has a candidate with the name {name}, and another one whose revision has that key, so it is not"
            f" clear which one is meant; rename the candidate, whose revision is {keys}, in spec.models"
        )
    return found[0]
