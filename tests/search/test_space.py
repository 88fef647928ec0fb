"""What a search may try: every configuration once, none that does nothing, no load it cannot take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_row import BASE, space

from triton_converters.contract.measurement_requests import Sweep
from triton_converters.contract.results import Tuning
from triton_converters.search.quick import climb
from triton_converters.search.space import LoadLevel, Space, loads

tunings = st.builds(
    Tuning,
    max_batch_size=st.sampled_from([0, 1, 2, 6, 8, 32]),
    instances=st.integers(1, 7),
    dynamic_batching=st.booleans(),
    preferred_batch_sizes=st.sampled_from([(), (2,), (4,), (4, 8), (8, 4), (4, 4, 8), (6, 2), (8,), (8, 8), (16, 32)]),
    max_queue_delay_microseconds=st.sampled_from([0, 1, 100, 250]),
    cuda_graphs=st.booleans(),
).filter(lambda tuning: max(tuning.preferred_batch_sizes, default=0) <= tuning.max_batch_size)
"""As the operator makes them."""
spaces = st.builds(
    Space,
    tunings,
    st.integers(1, 6),
    st.booleans(),
    st.lists(st.builds(LoadLevel, st.sampled_from([1, 4, 32]), st.integers(1, 4)), min_size=1, max_size=3, unique=True)
    .map(sorted)
    .map(tuple),
)


def values(found: Space) -> dict[str, tuple[object, ...]]:
    return {axis.field: axis.values for axis in found.axes}


def test_the_axes_of_a_model_of_up_to_8_samples() -> None:
    assert values(space()) == {
        "instances": (1, 2, 3, 4, 5),
        "dynamic_batching": (False, True),
        "max_batch_size": (1, 2, 4, 8),
        "max_queue_delay_microseconds": (0, 100, 500, 1000, 5000),
        "preferred_batch_sizes": ("none", "halves"),
        "cuda_graphs": (False,),
    }


def test_what_the_base_has_is_among_the_values_whatever_the_defaults_are() -> None:
    own = Tuning(12, 7, True, (3, 12), 250, False)
    axes = values(space(own, instances=2))
    assert axes["instances"] == (1, 2, 3, 4, 5, 6, 7)
    assert axes["max_batch_size"] == (1, 2, 4, 8, 12)
    assert axes["max_queue_delay_microseconds"] == (0, 100, 250, 500, 1000, 5000)
    assert axes["preferred_batch_sizes"] == ("none", "halves", "own")
    assert axes["dynamic_batching"] == (True,), "it is never turned off where it is on"


def test_a_model_without_batch_dimension_varies_in_instances_alone() -> None:
    found = space(Tuning(0, 1, False, (), 0, False), instances=3)
    assert [(each.instances, each.max_batch_size) for each in found.tunings] == [(1, 0), (2, 0), (3, 0)]


def test_without_batching_its_maximum_is_left_alone() -> None:
    found = space(Tuning(8, 1, True, (), 0, False), instances=1)
    assert [each for each in found.tunings if not each.dynamic_batching] == [Tuning(8, 1, False, (), 0, False)]
    assert len(found.tunings) == 1 + 3 * 5 * 2


def test_to_wait_for_the_maximum_alone_is_what_triton_does_anyway() -> None:
    found = space(Tuning(8, 1, True, (8,), 100, False), instances=1)
    assert values(found)["preferred_batch_sizes"] == ("none", "halves")
    assert found.tunings[0] == found.base
    assert Tuning(8, 1, True, (), 100, False) not in found.tunings


@pytest.mark.parametrize("written", [(8, 4), (4, 4, 8), (8, 2, 4), (2, 2), (8, 8)])
def test_preferred_sizes_may_be_written_in_any_order_and_twice(written: tuple[int, ...]) -> None:
    found = space(Tuning(8, 1, True, written, 100, False), instances=1)
    assert next(climb(found, (), ())).tuning == found.base
    assert found.base.preferred_batch_sizes == written, "the base stays what the spec says"
    for tuning in found.tunings[1:]:
        assert list(tuning.preferred_batch_sizes) == sorted(set(tuning.preferred_batch_sizes))


def test_a_configuration_takes_no_request_that_is_larger_than_its_maximum() -> None:
    found = space(loads=loads(Sweep((1, 4, 8), (1,), True)))
    assert found.servable(Tuning(4, 1, False, (), 0, False)) == (LoadLevel(1, 1), LoadLevel(4, 1))
    assert found.servable(Tuning(0, 1, False, (), 0, False)) == found.loads


def test_loads_go_from_the_lightest_to_the_heaviest() -> None:
    assert loads(Sweep((8, 1), (4, 2), False)) == (LoadLevel(1, 2), LoadLevel(1, 4), LoadLevel(8, 2), LoadLevel(8, 4))


def test_graphs_are_varied_only_where_that_is_asked_for() -> None:
    assert {each.cuda_graphs for each in space().tunings} == {False}
    assert {each.cuda_graphs for each in Space(BASE, 1, True, (LoadLevel(1, 1),)).tunings} == {False, True}


@given(spaces)
def test_every_configuration_is_one_of_its_own_and_can_be_served(found: Space) -> None:
    assert found.tunings[0] == found.base == found.tuning(found.base_place)
    assert len(set(found.tunings)) == len(found.tunings)
    for tuning in found.tunings[1:]:
        assert 1 <= tuning.instances <= max(5, found.base.instances)
        assert tuning.max_batch_size <= found.base.max_batch_size
        assert all(0 < size <= tuning.max_batch_size for size in tuning.preferred_batch_sizes)
        assert tuning.dynamic_batching or (tuning.preferred_batch_sizes, tuning.max_queue_delay_microseconds) == ((), 0)
    assert found.size == sum(len(found.servable(tuning)) for tuning in found.tunings)


@given(spaces, st.data())
def test_a_step_along_an_axis_leads_to_another_configuration(found: Space, data: st.DataObject) -> None:
    place = tuple(data.draw(st.integers(0, len(axis.values) - 1)) for axis in found.axes)
    for axis in range(len(found.axes)):
        for direction, other in found.neighbours(place, axis):
            assert found.tuning(other) != found.tuning(place)
            assert (other[axis] - place[axis]) * direction > 0
            assert other[:axis] + other[axis + 1 :] == place[:axis] + place[axis + 1 :]
