"""The bodies of what a pass reports: the status and the Events. Pure."""

from datetime import datetime
from typing import Any

from triton_converters.reasons import Reason
from triton_operator.api.status import ConditionType, TritonDeploymentStatus, condition, merge_conditions, timestamp

COMPONENT = "triton-operator"
LONGEST_EVENT_MESSAGE = 1024
"""Characters: the API server refuses more."""


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
        "message": message[:LONGEST_EVENT_MESSAGE],
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
