"""A few nights of models that are really trained, through the plan and the comparison's code; the program takes many.

``python3 -m tests.simulation.nights`` prints what docs/selection.md tells.
"""

import numpy
import pytest

from tests.simulation.nights.__main__ import HARD
from tests.simulation.nights.models import DIRECTIONS, task
from tests.simulation.nights.series import Bare, Object, a_claim, samples


def test_nights_through_the_plan_and_without_it_are_the_same() -> None:
    chance, hard = numpy.random.default_rng(3), task(HARD)
    first, rows = hard.good(chance), samples(chance, hard, 500)
    models = [hard.good(chance), hard.good(chance), hard.worse(chance, 0.2)]
    with a_claim():
        planned, bare = (kind(hard, rows, tuple(DIRECTIONS), first) for kind in (Object, Bare))
        nights = [[each.night(weights) for weights in models] for each in (planned, bare)]
    for one, other in zip(*nights, strict=True):
        assert one.refused == other.refused
        assert one.is_compared
        for metric, loss in one.told.items():
            assert loss == pytest.approx(other.told[metric], rel=0.05)
    assert [each.refused for each in nights[0]] == [False, False, True]


def test_other_samples_are_answered_by_the_file_of_what_serves() -> None:
    chance, hard = numpy.random.default_rng(4), task(HARD)
    with a_claim():
        served = Object(hard, samples(chance, hard, 500), ("accuracy",), hard.good(chance))
        served.rows = samples(chance, hard, 400)
        equal, worse = served.night(hard.good(chance)), served.night(hard.worse(chance, 0.25))
    assert (equal.is_compared, equal.refused, worse.refused) == (True, False, True)
