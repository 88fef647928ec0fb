"""Requests made of the reference's samples: all samples, all sizes, one shape a request."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.claim_store.dump import Batch
from triton_converters.gates.samples import Sample, cut, join, regroup, request_sizes


def sample(number: int, length: int = 1) -> Sample:
    array = numpy.full((length,), number, dtype=numpy.float32)
    return Sample(number, str(number), {"IN": array}, {"OUT": array})


@pytest.mark.parametrize(
    ("maximum", "sizes"), [(0, (1,)), (1, (1,)), (2, (1, 2)), (4, (1, 3, 4)), (8, (1, 5, 8)), (128, (1, 65, 128))]
)
def test_sizes_are_one_a_middle_one_and_the_maximum(maximum: int, sizes: tuple[int, ...]) -> None:
    assert request_sizes(maximum) == sizes


@given(st.lists(st.integers(1, 3), min_size=1, max_size=60), st.integers(1, 20))
def test_every_sample_and_every_size_is_served_and_shapes_are_never_mixed(lengths: list[int], maximum: int) -> None:
    samples = [sample(number, length) for number, length in enumerate(lengths)]
    groups = list(regroup(samples, request_sizes(maximum)))
    assert {each.number for group in groups for each in group} == set(range(len(lengths)))
    assert set(request_sizes(maximum)) <= {len(group) for group in groups}
    assert all(1 <= len(group) <= maximum for group in groups)
    assert all(len({each.shapes for each in group}) == 1 for group in groups)


def test_no_sample_makes_no_request() -> None:
    assert list(regroup([], (1, 2))) == []


def test_a_batch_is_cut_along_its_first_dimension() -> None:
    batch = Batch(
        ids=numpy.array(["a", "b"]),
        inputs={"IN": numpy.array([[1.0], [2.0]])},
        labels={},
        outputs={"OUT": numpy.array([[[3.0]], [[4.0]]])},
    )
    first, second = cut([batch], batched=True)
    assert (first.number, first.name, second.number, second.name) == (0, "a", 1, "b")
    assert second.inputs["IN"].tolist() == [2.0]
    assert second.outputs["OUT"].tolist() == [[4.0]]


def test_without_batch_dimension_a_batch_is_one_request() -> None:
    batch = Batch(numpy.array([7, 8]), {"IN": numpy.zeros((2, 3))}, {}, {"OUT": numpy.zeros((5,))})
    only, *others = cut([batch], batched=False)
    assert not others
    assert (only.name, only.inputs["IN"].shape, only.outputs["OUT"].shape) == ("7,8", (2, 3), (5,))


def test_joining_stacks_samples_only_where_there_is_a_batch_dimension() -> None:
    assert join([numpy.zeros(3), numpy.ones(3)], batched=True).shape == (2, 3)
    assert join([numpy.zeros(3)], batched=False).shape == (3,)
