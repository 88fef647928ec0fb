"""The changes of the active revision, and what canaries and soaks found, as recorded in the results ConfigMap. Pure.

A change is recorded before the Service moves, because afterwards nothing else tells which revision was active before. A
canary is the beginning of such a change, and recorded before the first request is sent to the new revision. The record
has the name of the new revision's Deployment, so what is active is still on trial if somebody deletes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import is_time


@dataclass(frozen=True)
class Promotion(Document):
    """A move of the Service from one Deployment to another, or the canary before it."""

    revision: str
    """Key of the revision that became active."""
    server: str
    """Name of the Deployment that the Service moves to."""
    uid: str
    """The uid of that Deployment."""
    previous: str
    """Name of the Deployment that was active before."""
    at: str
    """When the move was decided, in RFC 3339, UTC. Of a canary: when its present step began, or when it ended."""
    since: str
    """Since when requests count, in RFC 3339, UTC: since the move, since the canary began, or since it began anew."""
    by_route: bool = False
    """Whether this is a canary, so that the Service has not moved."""
    before: Mapping[str, Any] | None = None
    """What the status told of the previous revision, for the case that it becomes active again; None: that is over."""
    reason: Reason | None = None
    """What became of the soak, or of the canary; None: it goes on."""
    message: str = ""
    """The verdict in words; while there is none, what was found last instead of one."""
    intent: str = ""
    """A digest of what the spec asked for at the verdict, or before that at the move. While it is the same, a revision
    that failed is not tried."""
    steps: tuple[str, ...] = ()
    """What each step of the canary found that is over, in words."""
    held_since: str = ""
    """Since when the soak, or the present step of the canary, has no verdict although its time is over, in RFC 3339;
    empty: it is not over."""
    again_at: str = ""
    """When the soak or canary is judged again, in RFC 3339; empty: it was not judged yet."""
    down_since: str = ""
    """Since when each pass found that no pod of the active revision answers, in RFC 3339; empty: one answers."""
    down_seen: str = ""
    """When a pass found that last and noted it, in RFC 3339; empty: a pod answers."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a time that is none: whoever may edit the ConfigMap may have written it."""
        times = (self.held_since, self.again_at, self.down_since, self.down_seen)
        if not all(map(is_time, (self.at, self.since, *filter(None, times)))):
            raise DocumentError("a time of the record is none")
