"""The bodies of what a pass reports: the status and the Events. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable, shortened
from triton_operator.api.status import ConditionType, TritonDeploymentStatus, timestamp
from triton_operator.effects import Verdict, conditions_of

COMPONENT = "triton-operator"
ALL: Mapping[ConditionType, bool] = {"Ready": False, "UpToDate": False, "Reconciling": False, "Stalled": True}
"""The conditions of an object that is stalled."""
ONLY_NEWER: Mapping[ConditionType, bool] = {"UpToDate": False, "Reconciling": False}
"""What changes of them if only something newer than the active revision is."""
LONGEST_EVENT_MESSAGE = 1024
"""The longest message of an Event in bytes; the API server refuses more."""
LONGEST_ERROR = 300
"""The longest text of an exception in a condition, in bytes; the log has all of it."""


def status_body(owner: dict[str, Any], status: TritonDeploymentStatus) -> dict[str, Any]:
    """The body to apply: the whole status, for exactly the version of the object that it was computed from.

    Because of the resource version, an older view cannot overwrite a newer status, and a new object of the same name
    does not get the status of the old one. Defaults are left out, because the schema gives absence the same meaning.
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
    """Return `wanted` with conditions which say that the object is stalled.

    If the API server refuses what something newer needs, while the spec is met, only that does not go on.
    """
    generation = owner["metadata"]["generation"]
    held = {each.type: each.status for each in wanted.conditions}
    only_newer = reason is Reason.APPLY_REFUSED and (held.get("Ready"), held.get("UpToDate")) == ("True", "False")
    summary = ONLY_NEWER if only_newer else ALL
    verdicts = [Verdict(type, value, reason, message) for type, value in summary.items()]
    new = conditions_of(verdicts, observed.conditions, generation, now)
    others = [each for each in wanted.conditions if each.type not in summary]
    return wanted.model_copy(
        update={
            "observed_generation": generation,
            "conditions": [*new, *others],
        }
    )


def refused(
    owner: dict[str, Any],
    observed: TritonDeploymentStatus,
    wanted: TritonDeploymentStatus,
    messages: Mapping[ConditionType, str],
    now: datetime,
) -> TritonDeploymentStatus:
    """Return `wanted` with conditions which say that the API server refused an object that nothing else needs.

    ``messages``: why it was refused, by the type of its condition.
    """
    verdicts = [Verdict(type, False, Reason.APPLY_REFUSED, message) for type, message in messages.items()]
    new = conditions_of(verdicts, observed.conditions, owner["metadata"]["generation"], now)
    others = [each for each in wanted.conditions if each.type not in messages]
    return wanted.model_copy(update={"conditions": [*others, *new]})


def failed(
    owner: dict[str, Any], observed: TritonDeploymentStatus, error: Exception, now: datetime
) -> TritonDeploymentStatus:
    """Return `observed` with conditions that report an error of the operator; unchanged if it reports it already."""
    first_line = str(error).strip().partition("\n")[0]
    words = shortened(f"{type(error).__name__}: {first_line}", LONGEST_ERROR)
    message = (
        f"the operator failed: {words}. The active revision stays as it is, and the operator tries again; if the error"
        " stays, report it with the traceback in the operator's log"
    )
    status = stalled(owner, observed, observed, Reason.INTERNAL_ERROR, message, now)
    return observed if _failure(status) == _failure(observed) else status


def _failure(status: TritonDeploymentStatus) -> list[tuple[int, str]]:
    """The messages about a failed pass, without numbers and addresses, which may differ with each failure."""
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
        "message": shortened(printable(message), LONGEST_EVENT_MESSAGE),
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
