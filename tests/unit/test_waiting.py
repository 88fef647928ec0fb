"""Whose Events are worth a request."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from triton_operator.waiting import waiting_for

CREATED = datetime(2026, 11, 21, 10, tzinfo=UTC)
LATER = CREATED + timedelta(seconds=3)


def a_body(kind: str, status: dict[str, Any], job: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": kind.lower(), "creationTimestamp": "2026-11-21T10:00:00Z"}
    if job:
        metadata["ownerReferences"] = [{"uid": job}]
    return {"kind": kind, "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([a_body("Pod", {"phase": "Pending"})], ["pod"]),
        ([a_body("Pod", {})], []),
        ([a_body("Pod", {"phase": "Running"})], []),
        ([a_body("Job", {})], ["job"]),
        ([a_body("Job", {"conditions": [{"type": "Complete", "status": "True"}]})], []),
        ([a_body("Job", {"conditions": [{"type": "Failed", "status": "True"}]})], []),
        ([a_body("Job", {"conditions": [{"type": "FailureTarget", "status": "True"}]})], ["job"]),
        ([a_body("Job", {}), a_body("Pod", {"phase": "Running"}, job="job")], []),
        ([a_body("Job", {}) | {"spec": {"suspend": True}}], []),
        ([a_body("Service", {})], []),
    ],
)
def test_waiting_for(children: list[dict[str, Any]], expected: list[str]) -> None:
    assert waiting_for(children, LATER) == expected


def test_patience() -> None:
    pending = [a_body("Pod", {"phase": "Pending"})]
    assert waiting_for(pending, LATER - timedelta(milliseconds=1)) == []
    assert waiting_for(pending, LATER) == ["pod"]
