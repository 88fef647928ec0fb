"""What was written to the API server, and which rights were used, from its own audit log."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

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


class Right(NamedTuple):
    """A verb on a resource, as RBAC grants it."""

    group: str
    resource: str
    """With its subresource."""
    verb: str


@dataclass(frozen=True)
class Requests:
    """What a user asked for."""

    used: frozenset[Right]
    refused: frozenset[Right]
    """What no rule allowed. A refusal by a quota or a policy is none of these."""


def requests(log: Path, user: str, since: float = 0.0) -> Requests:
    """All that a user has asked for since a time (seconds since the epoch), reads too where they are audited."""
    used, refused = set(), set()
    with log.open() as lines:
        for event in map(json.loads, lines):
            asked = event.get("objectRef", {})
            moment = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            if event["user"].get("username") != user or "resource" not in asked or moment < since:
                continue
            resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            right = Right(asked.get("apiGroup", ""), resource, event["verb"])
            if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid":
                refused.add(right)
                continue
            used.add(right)
            # An apply of a missing object needs the right to create it, and is still a patch.
            if right.verb == "patch" and event.get("responseStatus", {}).get("code") == 201:
                used.add(right._replace(verb="create"))
    return Requests(frozenset(used), frozenset(refused))


def granted(rules: Iterable[Mapping[str, Any]]) -> frozenset[Right]:
    """What the rules of a role grant."""
    return frozenset(
        Right(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )
