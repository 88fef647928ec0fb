"""What is known of a followed source, from look to look."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from triton_converters.contract.document import DocumentError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_operator.observed.entries import read_entries
from triton_operator.observed.following import (
    APART_SECONDS,
    MOST_REFUSED,
    MOST_SEEN,
    FailedLook,
    Following,
    FoundVersion,
    RefusedVersion,
)

START = datetime(2026, 11, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(since_start: timedelta) -> str:
    return (START + since_start).isoformat()


def looked(versions: str, *, exact: bool, every: timedelta = HOUR) -> Following:
    """What is known after looks that found these versions, of one letter each."""
    known = Following("a")
    for number, version in enumerate(versions):
        known = known.after_answer(LookResult(version, exact, f"tag {version}"), at(number * every))
    return known


@pytest.mark.parametrize(
    ("versions", "of_digests", "of_listings"),
    [
        ("a", True, False),
        ("aa", True, True),
        ("ab", True, False),
        ("abb", True, True),
        ("aba", False, False),
        ("abaa", True, True),
        ("abab", False, False),
        ("abcabc", False, False),
        ("abcabcc", True, True),
        pytest.param("z" + "ab" * MOST_SEEN + "z", False, False, id="an alias that has changed often"),
    ],
)
def test_which_version_is_settled(versions: str, of_digests: bool, of_listings: bool) -> None:
    assert looked(versions, exact=True).is_settled is of_digests
    assert looked(versions, exact=False).is_settled is of_listings


@pytest.mark.parametrize(("seconds", "settled"), [(APART_SECONDS - 1, False), (APART_SECONDS, True)])
def test_two_looks_in_a_row_may_find_the_same_half(seconds: float, settled: bool) -> None:
    assert looked("abb", exact=False, every=timedelta(seconds=seconds)).is_settled is settled


def test_a_version_keeps_the_time_at_which_it_was_found_and_gets_its_newest_name() -> None:
    known = looked("abb", exact=True).after_answer(LookResult("b", True, "champion"), at(3 * HOUR))
    assert known.latest == FoundVersion("b", "champion", at(HOUR))
    assert (known.seen, known.checked_at) == (("a",), at(3 * HOUR))


def test_a_look_that_fails_changes_nothing_that_was_found() -> None:
    known = looked("ab", exact=True)
    for number in (2, 3):
        known = known.after_failure(Reason.SOURCE_UNREACHABLE, "no answer", at(number * HOUR))
    assert known.failed == FailedLook(Reason.SOURCE_UNREACHABLE, "no answer", at(2 * HOUR))
    before = looked("ab", exact=True)
    assert replace(known, failed=None, looked_at=before.looked_at) == before
    assert known.after_answer(LookResult("b", True, "tag b"), at(4 * HOUR)).failed is None


def test_only_the_last_versions_are_remembered() -> None:
    known = looked("".join(map(chr, range(ord("a"), ord("a") + MOST_SEEN + 3))), exact=True)
    assert len(known.seen) == MOST_SEEN
    for number in range(MOST_REFUSED + 3):
        known = known.with_refused(
            RefusedVersion(str(number), "basis", Reason.OUTPUTS_DIFFER, "x" * 999, known.looked_at)
        )
    assert [each.version for each in known.refused] == [str(number) for number in range(3, MOST_REFUSED + 3)]
    assert known.refusal("5", "basis") is not None
    assert known.refusal("5", "another basis") is known.refusal("0", "basis") is None
    # All of it takes a small part of the ConfigMap.
    assert len(known.to_json()) < 8000


@pytest.mark.parametrize("text", ["", "{", '{"source": "a", "looked_at": "soon"}', '{"source": "a", "more": 1}'])
def test_a_record_that_cannot_be_read_is_none(text: str) -> None:
    assert read_entries({"following": text}).following is None
    with pytest.raises(DocumentError):
        Following.from_json(text)


def test_a_record_is_read_as_it_was_written() -> None:
    known = looked("ab", exact=True).after_failure(Reason.SOURCE_NOT_FOUND, "gone", at(HOUR))
    assert read_entries({"following": known.to_json()}).following == known
