"""The delays that the tests of bad specs print."""

from typing import Any

from tests.e2e.hosts import delay

SINCE = 1_763_900_000.0
"""2025-11-23T12:13:20Z."""


def pod(exit_code: int, finished_at: str) -> dict[str, Any]:
    ended = {"exitCode": exit_code, "finishedAt": finished_at}
    return {"status": {"containerStatuses": [{"state": {"terminated": ended}}]}}


def test_the_delay_counts_from_the_first_failure_to_the_report() -> None:
    pods = [pod(0, "2025-11-23T12:13:21Z"), pod(42, "2025-11-23T12:13:23Z"), pod(42, "2025-11-23T12:13:25Z")]
    assert delay(pods, SINCE + 7, SINCE) == 4.0


def test_a_later_try_is_not_what_was_reported() -> None:
    """The pod that the report is about went with its Job, and the next try failed in its turn."""
    assert delay([pod(42, "2025-11-23T12:14:20Z")], SINCE + 4, SINCE) is None
