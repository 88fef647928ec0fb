"""Which failures of Jobs pass by themselves, and when the next try is due."""

from datetime import UTC, datetime, timedelta

import pytest

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import FAILING
from triton_operator.jobs.transient import (
    OF_ANSWERS,
    OF_RIGHTS,
    OF_ROOM,
    RETRY_SECONDS,
    TRANSIENT,
    seconds_until_due,
    with_times,
)
from triton_operator.observed.failures import Failure

START = datetime(2026, 11, 21, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_failure(reason: Reason = Reason.SOURCE_UNREACHABLE) -> Failure:
    return Failure("7", reason, "it is down")


def test_they_are_failures_that_nobody_has_to_change_the_spec_for() -> None:
    assert {each for each in Reason if "the operator tries again" in each.doc} - FAILING <= set(TRANSIENT)


def test_the_first_failure_begins_the_time_and_later_ones_keep_it() -> None:
    first = with_times(a_failure(), None, START)
    assert (first.since, first.at) == (START.isoformat(), START.isoformat())
    assert with_times(first, first, later(9)) == first, "it is recorded once"
    second = with_times(a_failure(Reason.SOURCE_TRUNCATED), first, later(60))
    assert (second.since, second.at) == (START.isoformat(), later(60).isoformat())


def test_what_somebody_has_to_change_has_no_time() -> None:
    invalid = a_failure(Reason.SOURCE_INVALID)
    assert with_times(invalid, None, START) == invalid


@pytest.mark.parametrize(
    ("reason", "lasted", "pause"),
    [
        (Reason.SOURCE_UNREACHABLE, 0, RETRY_SECONDS),
        (Reason.SOURCE_UNREACHABLE, 10, RETRY_SECONDS),
        (Reason.SOURCE_UNREACHABLE, 40, 40),
        (Reason.SOURCE_UNREACHABLE, 4000, OF_ANSWERS.longest),
        (Reason.STORAGE_FULL, 600, 600),
        (Reason.STORAGE_FULL, 40_000, OF_ROOM.longest),
        (Reason.SOURCE_ACCESS_DENIED, 0, OF_RIGHTS.shortest),
        (Reason.SOURCE_ACCESS_DENIED, 40_000, OF_RIGHTS.longest),
    ],
)
def test_the_pause_is_as_long_as_it_has_failed_within_bounds(reason: Reason, lasted: float, pause: float) -> None:
    failed = with_times(a_failure(reason), with_times(a_failure(reason), None, START), later(lasted))
    assert seconds_until_due(failed, later(lasted)) == pause
    assert seconds_until_due(failed, later(lasted + pause)) == 0


def test_a_failure_that_a_clock_ahead_has_dated_is_tried_again_now() -> None:
    failed = with_times(a_failure(), None, later(3600))
    assert seconds_until_due(failed, START) == 0
