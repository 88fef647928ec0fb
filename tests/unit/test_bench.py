import json
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.critical_path import SKEW_SECONDS, Span, critical_path, gaps
from bench.first_job import percentile
from bench.nights import Objects
from bench.scale import floor
from bench.scale.plot import svg
from bench.scale.process import Usage
from bench.scale.scenarios import quiet_after
from triton_operator.settings import Settings


def test_the_path_holds_the_slowest_of_parallel_spans() -> None:
    spans = [
        Span("source", 0.1, 5),
        Span("convert-a", 5.2, 9),
        Span("convert-b", 5.2, 12),
        Span("convert-c", 9.5, 15),
        Span("convert-d", 12.3, 14),
        Span("profile", 15.4, 20),
    ]
    path = critical_path(spans, end=21)
    assert [span.name for span in path] == ["source", "convert-a", "convert-c", "profile"]
    assert gaps(path, 0, 21) == pytest.approx([0.1, 0.2, 0.5, 0.4, 1])


def test_what_ends_after_the_end_is_not_on_the_path() -> None:
    assert critical_path([Span("in", 0, 1), Span("late", 0, 3)], end=2) == [Span("in", 0, 1)]


def test_a_span_that_begins_a_hair_before_its_cause_was_seen_to_end_still_follows_it() -> None:
    path = critical_path([Span("job", 0, 10.0), Span("server", 9.99, 12)], end=12)
    assert [span.name for span in path] == ["job", "server"]
    assert gaps(path, 0, 12) == [0, 0, 0]


TIMES = st.floats(0, 100, allow_nan=False)


@given(st.lists(st.tuples(TIMES, TIMES).map(sorted), max_size=12))
def test_work_and_gaps_add_up_to_the_whole(times: list[list[float]]) -> None:
    spans = [Span(str(number), start, end) for number, (start, end) in enumerate(times)]
    path = critical_path(spans, end=100)
    whole = sum(span.seconds for span in path) + sum(gaps(path, 0, 100))
    assert whole == pytest.approx(100, abs=SKEW_SECONDS * len(path) + 1e-6)
    assert [span.start for span in path] == sorted(span.start for span in path)


@pytest.mark.parametrize(("percent", "value"), [(50, 5), (95, 10), (99, 10), (100, 10), (10, 1), (11, 2)])
def test_percentiles_are_nearest_ranks(percent: float, value: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_the_plot_places_more_objects_further_right_and_more_time_further_up() -> None:
    picture = svg({"cpuMillisecondsOfAPass": [(100, 2.0), (1000, 2.0), (5000, 4.0)]})
    circles = [
        (float(each.get("cx", "")), float(each.get("cy", "")))
        for each in fromstring(picture)  # noqa: S314 - our own
        if "circle" in each.tag
    ]
    assert [x for x, _ in circles] == sorted({x for x, _ in circles})
    assert circles[0][1] == circles[1][1] > circles[2][1]


def test_an_operator_is_quiet_after_its_last_busy_second() -> None:
    def at(second: float, cpu: float) -> tuple[float, Usage]:
        return second, Usage(cpu, 0, 0)

    busy = [at(0, 0), at(0.5, 0.4), at(1, 0.8), at(1.5, 0.8), at(2, 0.81)]
    assert quiet_after([*busy, at(2.5, 0.81), at(3, 0.82)]) == 1.5
    assert quiet_after([at(0, 0), at(1, 0.01), at(2, 0.02)]) == 0


def test_the_floor_of_a_burst_is_made_of_the_operators_requests() -> None:
    settings = Settings("converter:test", "server:test", "converter-tensorflow:test")
    first, others = floor.recorded("bench", settings)
    within = "/namespaces/bench/"
    assert [(each.method, each.path.partition(within)[2].partition("?")[0]) for each in first] == [
        ("PATCH", f"persistentvolumeclaims/{floor.NAME}-repository"),
        ("PATCH", f"networkpolicies/{floor.NAME}-jobs"),
        ("POST", "jobs"),
    ]
    assert [each.method for each in others] == ["PATCH", "PATCH", "POST"]
    about = first[-1].about(floor.Seen("another", "its-uid", "7"))
    assert json.loads(about.body)["metadata"]["ownerReferences"][0]["name"] == "another"
    assert floor.NAME not in about.body + about.path
    assert floor.UID not in about.body


def test_a_night_tries_the_winner_alone_and_one_object_measures_at_a_time() -> None:
    objects = Objects(2, sweeps_seconds=20)
    first, second = objects.night("v1"), objects.night("v2")
    assert [(each.jobs["look"], each.jobs["source"], each.jobs["profile"]) for each in (first, second)] == [
        (2, 2, 8),
        (4, 2, 2),
    ]
    # Four candidates of 35 s each, and 25 s through the Service.
    assert first.hours * 3600 > 2 * (4 * 35 + 25)
