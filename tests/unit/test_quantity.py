"""Quantities are compared by value."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_operator.api.quantity import amount


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
