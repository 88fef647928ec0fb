"""The bodies of what a pass reports: the status and the Events. Pure."""

from datetime import datetime
from typing import Any

from triton_converters.contract.text import printable, shortened
from triton_operator.api.status import TritonDeploymentStatus, timestamp

COMPONENT = "triton-operator"
LONGEST_EVENT_MESSAGE = 1024
"""The longest message of an Event in bytes; the API server refuses more."""


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
