import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from triton_cpu import batch

SHAPES = st.tuples(st.integers(1, 5), st.sampled_from([(3,), (4,), (2, 2)]))


@given(st.lists(SHAPES, min_size=1, max_size=8), st.data())
def test_every_request_gets_its_own_rows_back(shapes: list[tuple[int, tuple[int, ...]]], data: st.DataObject) -> None:
    requests = [
        {"x": data.draw(arrays.arrays(np.int32, (rows, *rest))), "y": np.full((rows, 1), index)}
        for index, (rows, rest) in enumerate(shapes)
    ]
    answered = {}
    for group in batch.groups(requests, batched=True):
        members = [requests[index] for index in group]
        assert len({member["x"].shape[1:] for member in members}) == 1
        parts = batch.split(batch.join(members), batch.sizes(members))
        answered |= dict(zip(group, parts, strict=True))
    assert len(batch.groups(requests, batched=True)) == len({rest for _, rest in shapes})
    for index, request in enumerate(requests):
        np.testing.assert_array_equal(answered[index]["x"], request["x"])
        np.testing.assert_array_equal(answered[index]["y"], request["y"])


def test_requests_with_other_inputs_do_not_share_a_call() -> None:
    one, both = {"x": np.zeros((1, 2))}, {"x": np.zeros((1, 2)), "option": np.zeros((1, 1))}
    assert batch.groups([one, both, one], batched=True) == [[0, 2], [1]]


def test_requests_without_batch_dimension_are_called_one_by_one() -> None:
    requests = [{"x": np.zeros((2, 2))}, {"x": np.zeros((2, 2))}]
    assert batch.groups(requests, batched=False) == [[0], [1]]


def test_one_request_is_not_copied() -> None:
    request = {"x": np.zeros((2, 3))}
    assert batch.join([request])["x"] is request["x"]


@pytest.mark.parametrize("output", [np.zeros((4, 2)), np.zeros(()), np.zeros((2,))])
def test_output_without_the_batch_dimension_is_an_error(output: np.ndarray) -> None:
    with pytest.raises(batch.BatchError, match="'y' in responses: expected batch size of 3"):
        batch.split({"y": output}, [1, 2])
