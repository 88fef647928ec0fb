"""Reads what the operator wrote from the API server's audit log."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

UNCOUNTED = ("events", "leases")


class Write(NamedTuple):
    """One request that is not a read."""

    moment: float
    """The time in seconds since the epoch."""
    what: str
    """Verb and resource."""
    dry_run: bool


class AuditLog:
    """Reads the log from where it last stopped; at first, from its present end."""

    def __init__(self, path: Path, user: str) -> None:
        self._path, self._user = path, user
        self._position = path.stat().st_size

    def new_writes(self) -> list[Write]:
        """Return the user's writes since the last call, without Events and Leases."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            lines, _, _ = log.read().rpartition(b"\n")
        self._position += len(lines) + 1 if lines else 0
        entries = (json.loads(line) for line in lines.splitlines())
        return [_write(entry) for entry in entries if entry["user"].get("username") == self._user and _counts(entry)]


def _counts(entry: dict[str, object]) -> bool:
    reference = entry.get("objectRef") or {}
    assert isinstance(reference, dict)
    return entry["stage"] == "ResponseComplete" and reference.get("resource") not in UNCOUNTED


def _write(entry: dict[str, str]) -> Write:
    reference = entry["objectRef"]
    assert isinstance(reference, dict)
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    moment = datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
    return Write(moment, f"{entry['verb']} {resource}", "dryRun=" in entry["requestURI"])


def counted(writes: list[Write]) -> dict[str, int]:
    """Return the number of writes of each kind; dry runs are marked."""
    return dict(Counter(f"{write.what}{' (dry run)' if write.dry_run else ''}" for write in writes).most_common())
