"""The pure parts of `bench.ramp`: when requests arrive, and the picture."""

from xml.etree import ElementTree

import pytest

from bench.ramp.load import Leg, arrivals, rate
from bench.ramp.plot import Sample, svg
from triton_plugin.drafting.validation.validate import check

LEGS = [Leg(10, 5, 5), Leg(100, 5, 25), Leg(10, 25, 0)]


@pytest.mark.parametrize(("at", "expected"), [(0, 5), (10, 5), (60, 15), (110, 25), (115, 12.5), (121, 0)])
def test_the_rate_goes_in_straight_lines(at: float, expected: float) -> None:
    assert rate(LEGS, at) == expected


def test_as_many_requests_arrive_as_the_rates_ask_for() -> None:
    times = arrivals(LEGS)
    # 50, 1,500 and 125 requests on average; a Poisson process scatters by the square root.
    assert abs(len(times) - 1675) < 3 * 1675**0.5
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 120
    assert abs(sum(60 < at <= 110 for at in times) - 1000) < 3 * 1000**0.5


def test_the_picture_has_load_replicas_latency_and_their_thresholds() -> None:
    samples = [Sample(at=60.0 * minute, rate=5.0, replicas=1, p99=40.0, failed=0) for minute in range(5)]
    root = ElementTree.fromstring(svg(samples, threshold=10, budget=100))  # noqa: S314 - made here
    texts = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"load", "ready replicas", "p99 latency", "the constraint", "10/s for each ready replica"} <= texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 5


def test_its_object_is_valid() -> None:
    from bench.ramp.__main__ import BY_SATURATION, deployment

    assert check(deployment(BY_SATURATION)) == []
