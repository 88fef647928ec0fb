"""Which children wait for something that only Events tell: a volume that does not mount, a pod that no one may create.

Pure. Events are read on demand: a watch of all of them would be the heaviest of the operator.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Body = Mapping[str, Any]

PATIENCE = timedelta(seconds=3)
"""A pod of an image that is there starts in about a second; its Events are not worth a request before."""
EVENTS_AGAIN_SECONDS = 5.0
"""How soon Events are read again while something waits: a reason is to be seen within 10 s."""


def waiting_for(children: Iterable[Body], now: datetime) -> list[str]:
    """Uids of the pods that are pending, and of the Jobs that have no pod, for longer than PATIENCE."""
    bodies = list(children)
    with_pods = {
        reference["uid"]
        for body in bodies
        if body["kind"] == "Pod"
        for reference in body["metadata"].get("ownerReferences", [])
    }
    return [
        body["metadata"]["uid"]
        for body in bodies
        if _created(body) + PATIENCE <= now
        and (
            (body["kind"] == "Pod" and body.get("status", {}).get("phase") == "Pending")
            or (body["kind"] == "Job" and _works(body) and body["metadata"]["uid"] not in with_pods)
        )
    ]


def _works(job: Body) -> bool:
    """Whether the Job controller is to make pods for it."""
    conditions = job.get("status", {}).get("conditions", [])
    finished = any(each["type"] in {"Complete", "Failed"} and each["status"] == "True" for each in conditions)
    return not finished and not job.get("spec", {}).get("suspend", False)


def _created(body: Body) -> datetime:
    return datetime.strptime(body["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
