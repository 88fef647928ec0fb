"""Quantities are compared by value."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_operator.api.quantity import amount, canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"),
        ("1Gi", "1024Mi"),
        ("0.5", "500m"),
        ("1e3", "1k"),
        ("1E3", "1000"),
        ("1E", "1000P"),
        (".5Gi", "512Mi"),
        (2, "2"),
        ("100u", "0.0001"),
    ],
)
def test_equal_quantities(one: object, other: object) -> None:
    assert amount(one) == amount(other) is not None


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1m", "1M"), ("1", "1000"), ("1e3", "1E")])
def test_different_quantities(one: str, other: str) -> None:
    assert amount(one) != amount(other)


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1Zi", "Gi", "1.2.3", "1m\n", True, None])
def test_no_quantity(text: object) -> None:
    assert amount(text) is None


@given(st.decimals(0, 10**12, places=3), st.sampled_from(["", "k", "M", "Ki", "Gi"]))
def test_no_precision_is_lost(number: Decimal, suffix: str) -> None:
    factor = {"": 1, "k": 10**3, "M": 10**6, "Ki": 2**10, "Gi": 2**30}[suffix]
    assert amount(f"{number}{suffix}") == number * factor


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("1024Mi", "1Gi"),
        ("1073741824", "1Gi"),
        (2, "2"),
        ("2000m", "2"),
        ("0.5", "500m"),
        ("1T", "1T"),
        ("1.5Gi", "1536Mi"),
        (0, "0"),
        ("0.0000000001", "1n"),
    ],
)
def test_the_one_text_of_a_quantity(given: object, text: str) -> None:
    assert canonical(given) == text


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_one_text_has_the_same_value_and_is_its_own(number: int, suffix: str) -> None:
    text = canonical(f"{number}{suffix}")
    assert amount(text) == amount(f"{number}{suffix}")
    assert canonical(text) == text


@pytest.mark.parametrize("text", ["", "one", -1, "-1Gi", True, None])
def test_what_is_no_quantity_has_no_text(text: object) -> None:
    with pytest.raises(ValueError, match="a quantity is a number, with or without a suffix"):
        canonical(text)
