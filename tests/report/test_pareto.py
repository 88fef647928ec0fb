from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from triton_plugin.telling.report.pareto import Point, front

points = st.lists(st.builds(Point, st.integers(1, 50), st.integers(1, 50)), max_size=40)


@given(points)
def test_nobody_beats_a_point_of_the_front(given: list[Point]) -> None:
    best = front(given)
    for point in best:
        assert not [p for p in given if p != point and p.latency <= point.latency and p.throughput >= point.throughput]


@given(points)
def test_whoever_is_not_on_the_front_is_beaten_by_it(given: list[Point]) -> None:
    best = front(given)
    for point in set(given) - set(best):
        assert [p for p in best if p.latency <= point.latency and p.throughput >= point.throughput]


@given(points)
def test_the_front_rises(given: list[Point]) -> None:
    best = front(given)
    assert all(a.latency < b.latency and a.throughput < b.throughput for a, b in pairwise(best))
