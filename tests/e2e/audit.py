"""What was written to the API server, from its own audit log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Write:
    """One request that was not a read."""

    time: float
    """Seconds since the epoch."""
    user: str
    verb: str
    resource: str
    """With its subresource: tritondeployments/status."""
    namespace: str
    name: str


def writes(log: Path, since: float, until: float) -> Iterator[Write]:
    """All writes between two times."""
    with log.open() as lines:
        for line in lines:
            event = json.loads(line)
            moment = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            if event["verb"] in READS or not since <= moment <= until:
                continue
            target = event.get("objectRef", {})
            resource = "/".join(filter(None, (target.get("resource", ""), target.get("subresource", ""))))
            yield Write(
                moment,
                event["user"]["username"],
                event["verb"],
                resource,
                target.get("namespace", ""),
                target.get("name", ""),
            )
