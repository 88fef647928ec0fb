"""The inputs a model is traced with."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.claim_store.dump import Batch
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert.example import example_inputs


def batch(count: int, *shape: int) -> Batch:
    x = numpy.arange(count * int(numpy.prod(shape)), dtype=numpy.float32).reshape(count, *shape)
    return Batch(numpy.arange(count), {"x": x}, {}, {})


def signature(max_batch_size: int, *dims: int) -> Signature:
    return Signature((Tensor("x", "FP32", dims),), (Tensor("y", "FP32", (1,)),), max_batch_size)


@given(
    st.integers(1, 64),
    st.integers(1, 9),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_batch_is_a_size_no_other_dimension_has(
    limit: int, count: int, shape: list[int], at_least_two: bool
) -> None:
    made = example_inputs([batch(count, *shape)], signature(limit, *shape), at_least_two)["x"]
    size = made.shape[0]
    assert made.shape[1:] == tuple(shape)
    assert size <= max(limit, 2 if at_least_two else 1)
    if limit >= 2 or at_least_two:
        assert size >= 2
    if limit >= 7:
        assert size not in shape or set(shape) >= {2, 3, 5, 7}
    rows = {row.tobytes() for row in batch(count, *shape).inputs["x"]}
    assert {row.tobytes() for row in made} <= rows


def test_a_batch_whose_varying_dimension_is_one_is_avoided() -> None:
    batches = [batch(4, 1), batch(4, 6), batch(4, 7)]
    assert example_inputs(batches, signature(8, -1), at_least_two=False)["x"].shape == (3, 6)


def test_where_all_are_special_the_first_is_taken() -> None:
    assert example_inputs([batch(4, 1), batch(4, 0)], signature(8, -1), at_least_two=False)["x"].shape == (3, 1)


@pytest.mark.parametrize("at_least_two", [False, True])
def test_without_batch_dimension_a_request_is_taken_as_it_is(at_least_two: bool) -> None:
    assert example_inputs([batch(1, 3), batch(5, 3)], signature(0, -1, 3), at_least_two)["x"].shape == (5, 3)
