"""Durations: one text for each length, whatever it was written as."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from triton_operator.api.duration import (
    LONGEST_MEASURED,
    Duration,
    MeasuredDuration,
    Span,
    Within,
    amount,
    in_unit,
    measured,
    seconds,
    written,
)

SPAN: TypeAdapter[str] = TypeAdapter(Annotated[Span, Within("100ms", "24h")])


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (5000, "ms", "5s"),
        (100, "us", "100us"),
        (1500, "ms", "1500ms"),
        (300, "s", "5m"),
        (90, "s", "90s"),
        (86400, "s", "24h"),
        (0, "us", "0s"),
        (0.5, "us", "0.5us"),
    ],
)
def test_a_number_becomes_a_duration_in_the_largest_unit_that_tells_it_whole(
    number: float, unit: str, text: str
) -> None:
    assert written(number, unit) == text
    assert amount(text, unit) == number


@given(st.integers(0, 86_400_000_000))
def test_no_length_is_lost(microseconds: int) -> None:
    assert amount(written(microseconds, "us"), "us") == microseconds
    assert amount(in_unit(microseconds, "ms"), "us") == microseconds


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (18342, "18.3ms"),
        (512, "512us"),
        (1, "1us"),
        (0, "0s"),
        (1000, "1ms"),
        (1234, "1.23ms"),
        (1235, "1.24ms"),
        (1245, "1.24ms"),
        (9995, "10ms"),
        (999_499, "999ms"),
        (999_500, "1s"),
        (75_312_000, "75.3s"),
        (4_000_000_000, "4000s"),
        (-5, "0s"),
        (10**30, "100000000s"),
    ],
)
def test_a_measured_time_has_three_digits_in_the_unit_that_suits_it(microseconds: int, text: str) -> None:
    assert measured(microseconds) == text


@given(st.integers(1, LONGEST_MEASURED))
def test_a_measured_time_is_as_close_as_three_digits_are(microseconds: int) -> None:
    told = TypeAdapter(MeasuredDuration).validate_python(measured(microseconds))
    assert abs(amount(told, "us") - microseconds) * 200 <= microseconds
    assert measured(int(amount(told, "us"))) == told, "rounded once more, it is the same"


@given(st.integers(0, LONGEST_MEASURED), st.integers(0, LONGEST_MEASURED))
def test_what_is_longer_is_never_told_as_shorter(one: int, other: int) -> None:
    assert (one <= other) <= (seconds(measured(one)) <= seconds(measured(other)))


@pytest.mark.parametrize("text", ["300s", "5m", "5.0m", "300000ms"])
def test_equal_durations_are_equal_texts(text: str) -> None:
    assert SPAN.validate_python(text) == "5m"
    assert seconds(text) == 300


def test_a_bound_in_a_constraint_stays_as_it_was_written() -> None:
    assert TypeAdapter(Duration).validate_python("2500us") == "2500us"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("99ms", "must be from 100ms to 24h: correct it"),
        ("25h", "must be from 100ms to 24h: correct it"),
        ("5", "a duration is a number and a unit (us, ms, s, m or h)"),
        ("5 m", "a duration is a number and a unit"),
        ("-5m", "a duration is a number and a unit"),
        ("1h30m", "a duration is a number and a unit"),
    ],
)
def test_what_is_no_duration_or_beyond_a_bound_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SPAN.validate_python(text)
    assert words in str(refused.value)
