"""What a search found, as the status tells it."""

from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.results import Tuning
from triton_operator.api.duration import amount
from triton_operator.api.model import ModelConfiguration
from triton_operator.api.search_status import config_status

TUNINGS = st.integers(1, 65536).flatmap(
    lambda largest: st.builds(
        Tuning,
        max_batch_size=st.just(largest),
        instances=st.integers(1, 64),
        dynamic_batching=st.booleans(),
        preferred_batch_sizes=st.lists(st.integers(1, largest), max_size=16).map(tuple),
        max_queue_delay_microseconds=st.integers(0, 60_000_000),
        cuda_graphs=st.booleans(),
    )
)


@given(TUNINGS)
def test_what_was_found_can_be_copied_into_the_spec(found: Tuning) -> None:
    told = config_status(found).model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    spec = ModelConfiguration.model_validate(told)
    batching = spec.dynamic_batching
    assert (spec.max_batch_size, spec.instances, spec.cuda_graphs) == (
        found.max_batch_size,
        found.instances,
        found.cuda_graphs,
    )
    assert (batching is not None) is found.dynamic_batching
    if batching is not None:
        assert tuple(batching.preferred_batch_sizes) == found.preferred_batch_sizes
        assert amount(batching.max_queue_delay, "us") == found.max_queue_delay_microseconds


def test_the_configuration_in_words() -> None:
    assert str(config_status(Tuning(8, 3, True, (4, 8), 400, True))) == (
        "max batch 8, 3 instances, queue delay 400us, preferred 4 8, CUDA graphs"
    )
    assert str(config_status(Tuning(8, 1, False, (), 0, False))) == "max batch 8, 1 instance, no dynamic batching"
