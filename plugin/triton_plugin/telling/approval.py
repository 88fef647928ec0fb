"""Says which revision an approval names. Pure."""

from collections.abc import Sequence

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import CandidateStatus
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject

SELECTABLE = ("Passed", "Selected")
"""The states of candidates that may serve."""


def is_worse(candidate: CandidateStatus) -> bool:
    """Whether a candidate is refused only because a metric is worse than before, which an approval accepts."""
    return candidate.reason == Reason.WORSE_THAN_BEFORE and bool(candidate.revision)


def accepted(candidate: CandidateStatus) -> str:
    """Return what the approval of a candidate accepts, in a sentence; empty: it is not worse than before."""
    if not is_worse(candidate):
        return ""
    values = (
        f"{each.metric} {each.value}, before {' and '.join(filter(None, (each.previous, each.anchor)))}"
        for each in candidate.metrics
        if each.previous
    )
    return f" That accepts {'; '.join(values) or 'that it is worse than before'}; later ones are held against it."


def approved_revision(subject: Subject, name: str | None) -> CandidateStatus:
    """Return the candidate to approve. Raises SubjectError if there is none, or nothing waits for an approval.

    ``name``: of a candidate, or the key of its revision; None: the one that would be selected.
    """
    whose = _whose(subject)
    worse = [each for each in subject.status.candidates if is_worse(each)]
    # A newer version of a source may be staged, whatever spec.selection.approval says.
    waits = any(each.reason == Reason.AWAITING_APPROVAL for each in subject.status.candidates)
    is_asked = subject.spec.selection.approval == "Manual" or waits
    if not is_asked and not worse:
        raise SubjectError(f"{whose} needs no approval: spec.selection.approval is {subject.spec.selection.approval}")
    passed = [each for each in subject.status.candidates if each.state in SELECTABLE and each.revision]
    candidates = [*passed, *worse] if is_asked else worse
    if name is None:
        return _waiting(subject, candidates)
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


def _waiting(subject: Subject, candidates: Sequence[CandidateStatus]) -> CandidateStatus:
    """Return the candidate that waits, or the only one that is worse than before. Raises SubjectError for none."""
    waiting = [each for each in candidates if each.reason == Reason.AWAITING_APPROVAL]
    worse = [each for each in candidates if is_worse(each)]
    if waiting or len(worse) == 1:
        return [*waiting, *worse][0]
    condition = subject.newer_condition or subject.condition("Ready")
    state = f"it is at {condition.reason}" if condition else "the operator has not seen it yet"
    raise SubjectError(f"{_whose(subject)} does not wait for an approval: {state}. To approve a candidate, name it")


def _whose(subject: Subject) -> str:
    return f"TritonDeployment {subject.name}"
