"""The bodies of what a pass reports: the status and the Events. Pure."""

import re
from datetime import datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_operator.api.status import ConditionType, TritonDeploymentStatus, condition, merge_conditions, timestamp

COMPONENT = "triton-operator"
LONGEST_EVENT_MESSAGE = 1024
"""Bytes: the API server refuses more."""
LONGEST_ERROR = 300
"""Bytes of an exception's words in a condition; the log has them all."""


def status_body(owner: dict[str, Any], status: TritonDeploymentStatus) -> dict[str, Any]:
    """The body to apply: the whole status, for the very version of the object that it was computed from.

    With the resource version an older view cannot overwrite a newer status, and a new object of the same name does not
    get the status of the old one. Defaults are left out: they are the schema's meaning of absence.
    """
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "metadata": {key: metadata[key] for key in ("name", "namespace", "resourceVersion")},
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
    }


def stalled(
    owner: dict[str, Any],
    observed: TritonDeploymentStatus,
    wanted: TritonDeploymentStatus,
    reason: Reason,
    message: str,
    now: datetime,
) -> TritonDeploymentStatus:
    """`wanted`, except that nothing goes on before somebody changes something."""
    generation = owner["metadata"]["generation"]
    summary: tuple[tuple[ConditionType, bool], ...] = (("Ready", False), ("Reconciling", False), ("Stalled", True))
    new = {type: condition(type, value, reason, message, generation, now) for type, value in summary}
    others = [old for old in wanted.conditions if old.type not in new]
    return wanted.model_copy(
        update={
            "observed_generation": generation,
            "conditions": merge_conditions(observed.conditions, [*new.values(), *others]),
        }
    )


def failed(
    owner: dict[str, Any], observed: TritonDeploymentStatus, error: Exception, now: datetime
) -> TritonDeploymentStatus:
    """`observed`, except that a pass ended with an error of the operator's own; unchanged where it says so already."""
    first_line = str(error).strip().partition("\n")[0]
    words = shortened(f"{type(error).__name__}: {first_line}", LONGEST_ERROR)
    message = (
        f"the operator failed: {words}. The active revision stays as it is, and the operator tries again; if the error"
        " stays, report it with the traceback in the operator's log"
    )
    status = stalled(owner, observed, observed, Reason.INTERNAL_ERROR, message, now)
    if _failure(status) == _failure(observed):
        return observed
    if observed.images is not None:
        # They are pinned for the generation that the status is of, and no pass has pinned any for this one.
        status = status.model_copy(update={"observed_generation": observed.observed_generation})
    return status


def _failure(status: TritonDeploymentStatus) -> list[tuple[int, str]]:
    """What is said of a failed pass, without numbers and addresses: they may differ each time it fails."""
    return [
        (each.observed_generation, re.sub(r"0x[0-9a-f]+|\d+", "", each.message))
        for each in status.conditions
        if (each.type, each.reason) == ("Stalled", Reason.INTERNAL_ERROR)
    ]


def event_body(owner: dict[str, Any], type: str, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """A core/v1 Event about the TritonDeployment; `type` is Normal or Warning."""
    metadata = owner["metadata"]
    time = timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "type": type,
        "reason": reason,
        "message": shortened(message, LONGEST_EVENT_MESSAGE),
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
