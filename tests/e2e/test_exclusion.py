"""Measurements of different objects exclude each other on a node."""

from tests.e2e.exclusion import REQUESTS, Exclusion, overlapping


def test_no_two_measurements_run_on_one_node_at_once(exclusion: Exclusion) -> None:
    own = [each for each in exclusion.ran if each.owner in REQUESTS]
    assert len(own) == 2 * len(REQUESTS), "each has a profile, and a measurement through its Service"
    assert overlapping(exclusion.ran) == []


def test_the_wait_causes_no_warning(exclusion: Exclusion) -> None:
    assert set(exclusion.waited) <= {"Normal"}
