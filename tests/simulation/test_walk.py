"""Some thousand steps of the random walk; `make test-walk` takes a million."""

import pytest

from tests.simulation.walk import walks

STEPS = 1500


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_something_answers_and_it_ends(seed: int) -> None:
    assert [passes for _, _, passes in walks(seed, STEPS)]
