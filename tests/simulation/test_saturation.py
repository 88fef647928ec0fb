"""Sweeps that end at saturation, and request rates: what Jobs are asked, what the status says, what is ranked."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.simulation.answers import ENVIRONMENT, GOOD, Script, all_good, row
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_spec
from tests.states.deployment import a_deployment
from triton_converters.contract.measurement_requests import Constraint, MeasureRequest, OpenLoop, ProfileRequest, Sweep
from triton_converters.contract.results import MeasureResult
from triton_converters.contract.scoring import Violation
from triton_converters.contract.step_times import StepTimes
from triton_operator import names
from triton_operator.api.triton_deployment import parse
from triton_operator.context import Context
from triton_operator.jobs.profile import open_loop
from triton_operator.observed.history import History
from triton_operator.observed.snapshot import observe
from triton_operator.planning.pins import pinned_images
from triton_operator.rollout.preview import around, beyond, merged

NOW = datetime(2026, 11, 21, tzinfo=UTC)
UNTIL_SATURATED = {"concurrency": {"start": 1}}
RATES = {"concurrency": {"start": 1, "end": 4}, "requestRate": {"rates": [300, 100]}}
MEASURED = [1, 2, 4, 8, 16, 32]
"""The server's throughput rises up to concurrency 8."""


def settled(online: dict[str, Any] | None, **fields: Any) -> Cluster:
    performance = {"performance": {"online": online}} if online else {}
    return a_deployment().one_candidate().asking(**performance, **fields).serving().cluster()


def saturation(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.status["performance"]["saturation"]
    return found


def asked_of(spec: dict[str, Any]) -> OpenLoop:
    """The request rates that a profile Job is asked for."""
    deployment = parse(Cluster(spec).body())
    context = Context(deployment, observe("digits", ()), SETTINGS, NOW, pinned_images(deployment, History(), SETTINGS))
    return open_loop(context)


def concurrencies(cluster: Cluster) -> list[int]:
    return [row["concurrency"] for row in cluster.status["performance"]["online"]]


def test_a_sweep_without_an_end_says_where_one_replica_is_saturated() -> None:
    cluster = settled(UNTIL_SATURATED)
    assert saturation(cluster) == {
        "ended": "Plateau",
        "concurrency": 8,
        "throughput": "3600.0",
        "p99Latency": "5ms",
    }


def test_the_target_is_measured_at_the_concurrencies_of_its_profile() -> None:
    assert concurrencies(settled(UNTIL_SATURATED)) == MEASURED


def test_a_sweep_that_the_spec_leaves_out_finds_the_saturation() -> None:
    cluster = settled(None)
    assert (saturation(cluster)["ended"], saturation(cluster)["concurrency"]) == ("Plateau", 8)


def test_the_end_of_a_range_is_a_lower_bound() -> None:
    cluster = settled({"concurrency": {"start": 1, "end": 4}})
    assert (saturation(cluster)["ended"], saturation(cluster)["lowerBound"]) == ("RangeEnd", True)
    assert concurrencies(cluster) == [1, 2, 3, 4]


def profile_asked(**spec: Any) -> ProfileRequest:
    """What the first profile Job is asked."""
    found: list[ProfileRequest] = []

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        if stage == "profile":
            found.append(request)
        return GOOD

    cluster = a_deployment().one_candidate().asking(**spec).where(has_keda=True).faring(scripts).cluster()
    cluster.until(lambda _: found)
    return found[0]


def test_all_sweeps_have_a_time_and_fast_requests_short_windows_where_the_spec_asks_for_no_load() -> None:
    asked = profile_asked()
    assert (asked.seconds, asked.load.measurement.fast_milliseconds) == (20, 300)
    assert asked.online == Sweep((1,), tuple(1 << number for number in range(13)), False, until_saturated=True)


@pytest.mark.parametrize(
    ("performance", "seconds", "milliseconds"),
    [
        ({"online": UNTIL_SATURATED}, 0, 0),
        ({"measurement": {"requestCount": 500}}, 20, 0),
        ({"measurement": {"mode": "TimeWindows", "interval": "1s"}}, 20, 0),
        ({"measurement": {"stabilityPercent": 20}}, 20, 300),
    ],
    ids=str,
)
def test_what_the_spec_asks_for_comes_first(performance: dict[str, Any], seconds: int, milliseconds: int) -> None:
    asked = profile_asked(performance=performance)
    assert (asked.seconds, asked.load.measurement.fast_milliseconds) == (seconds, milliseconds)


def test_an_autoscaler_needs_the_saturation_however_long_it_takes() -> None:
    asked = profile_asked(serving={"autoscaling": {"maxReplicas": 2}})
    assert (asked.seconds, asked.online.until_saturated) == (0, True)


@pytest.mark.parametrize("shared", [[], ["Offline"], ["Online"], ["Online", "Offline"]], ids=str)
def test_the_sweeps_of_the_spec_share_memory_with_a_private_server_and_none_with_the_service(shared: list[str]) -> None:
    found: dict[str, Any] = {}

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        found[stage] = request
        return GOOD

    asked = a_deployment().one_candidate().asking(performance={"sharedMemory": shared})
    asked.faring(scripts).cluster().until(lambda _: "measure" in found)
    profiled = [scenario for scenario in ("offline", "online") if getattr(found["profile"], scenario).shared_memory]
    assert profiled == [each.lower() for each in sorted(shared)]
    assert not found["measure"].online.shared_memory


def test_an_edit_of_a_constraint_judges_the_saturation_anew_and_measures_nothing() -> None:
    cluster = settled(UNTIL_SATURATED)
    story = len(cluster.story)
    cluster.edit(selection={"constraints": {"p99Latency": "4ms"}, "fallback": "Closest"})
    cluster.settle()
    assert cluster.story[story:] == []
    assert saturation(cluster) == {"ended": "Constraint"}


def test_a_search_measures_the_loads_of_the_profile() -> None:
    asked: list[Sweep] = []

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        if stage == "search":
            asked.append(request.sweep)
        return GOOD

    searched = {"selection": {"search": {"mode": "Quick"}}}
    a_deployment().one_candidate().asking(performance={"online": UNTIL_SATURATED}, **searched).faring(
        scripts
    ).cluster().settle()
    assert {(each.concurrencies, each.until_saturated) for each in asked} == {(tuple(MEASURED), False)}


def test_request_rates_are_recorded_and_tell_what_is_sustained() -> None:
    cluster = settled(RATES)
    rows = cluster.status["performance"]["requestRate"]
    assert [(row["requestRate"], row.get("concurrency"), row["throughput"]) for row in rows] == [
        (100, None, "100.0"),
        (300, None, "300.0"),
    ]
    assert saturation(cluster)["sustainedRequestRate"] == 300


def test_candidates_are_ranked_by_request_rates_if_the_spec_says_so() -> None:
    cluster = settled(RATES, selection={"scenario": "RequestRate", "constraints": {"p99Latency": "6ms"}})
    chosen = cluster.candidate("onnx-fp32")
    assert (chosen["load"], chosen["throughput"]) == ("batch 1, 300 requests/s", "300.0")
    assert chosen["satisfiesConstraints"]


def test_a_constraint_that_no_request_rate_meets_selects_nothing() -> None:
    broken = {"scenario": "RequestRate", "constraints": {"p99Latency": "4ms"}}
    cluster = a_deployment().one_candidate().asking(performance={"online": RATES}, selection=broken).settled().cluster()
    assert cluster.condition("Selected")["reason"] == "ConstraintsNotMet"
    assert "requests/s" in cluster.condition("Selected")["message"]


@pytest.mark.parametrize("online", [None, RATES], ids=["none", "two"])
def test_an_autoscaler_has_the_rest_of_the_capacity_confirmed(online: dict[str, Any] | None) -> None:
    performance = {"performance": {"online": online}} if online else {}
    constraints = {"p99Latency": "9ms", "throughput": 5, "memory": "1Gi"}
    autoscaling = {"maxReplicas": 4, "headroomPercent": 30}
    asked = asked_of(
        a_spec(**performance, selection={"constraints": constraints}, serving={"autoscaling": autoscaling})
    )
    assert asked.rates == ((100, 300) if online else ())
    assert asked.confirmed_percent == 70
    assert [(each.metric, each.maximum) for each in asked.constraints] == [("P99LatencyMicroseconds", 9000)]
    assert asked_of(a_spec(**performance, selection={"constraints": constraints})).constraints == ()


# Through the preview Service -----------------------------------------------------------------------------------------


def previewed(cluster: Cluster) -> list[tuple[int, ...]]:
    """The concurrencies of each measure Job that was made, in their order."""
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "measure"]
    requests = [each["spec"]["template"]["spec"]["containers"][0]["args"][-1] for each in jobs]
    return [MeasureRequest.from_json(each).online.concurrencies for each in requests]


def slow_from(concurrency: int, stage: str, candidate: str, request: Any) -> Script:
    """Through the preview Service a request takes 9 ms from so many in flight on, and 4 ms below."""
    if stage != "measure":
        return GOOD
    return Script(p99=9000 if min(request.online.concurrencies) >= concurrency else 4000)


def rolled_out(concurrency: int, **selection: Any) -> Cluster:
    """An object that was chosen at concurrency 8, with a constraint on the latency, after all that it can do."""
    asked = {"constraints": {"p99Latency": "6ms"}} | selection
    return (
        a_deployment()
        .one_candidate()
        .asking(selection=asked)
        .faring(partial(slow_from, concurrency))
        .settled()
        .cluster()
    )


def test_the_preview_is_measured_at_the_chosen_load_and_those_around_it() -> None:
    cluster = settled(None)
    assert previewed(cluster) == [(4, 8, 16)]
    assert concurrencies(cluster) == [4, 8, 16]


def test_lower_loads_are_measured_until_one_meets_the_constraints() -> None:
    cluster = rolled_out(3)
    assert previewed(cluster) == [(4, 8, 16), (1, 2)]
    assert concurrencies(cluster) == [1, 2, 4, 8, 16]
    assert cluster.status["serving"]["p99Latency"] == "4ms"
    assert cluster.condition("Ready")["status"] == "True"


def test_a_constraint_that_no_load_meets_is_not_met_and_a_retry_measures_again() -> None:
    cluster = rolled_out(0)
    assert cluster.condition("PerformanceMeasured")["reason"] == "ConstraintsNotMet"
    assert previewed(cluster) == [(4, 8, 16), (1, 2)]
    cluster.scripts = all_good
    cluster.retry()
    cluster.settle()
    assert previewed(cluster) == [(4, 8, 16)]
    assert cluster.condition("Ready")["status"] == "True"


def test_an_edit_of_what_chooses_the_load_measures_nothing_as_long_as_the_rows_meet_the_constraints() -> None:
    cluster = settled(None)
    story = len(cluster.story)
    cluster.edit(selection={"objectives": [{"metric": "p99Latency"}], "constraints": {"p99Latency": "6ms"}})
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["load"] == "batch 1, concurrency 1"
    assert (cluster.story[story:], concurrencies(cluster)) == ([], [4, 8, 16])


def test_other_sweeps_have_the_saturation_measured() -> None:
    assert concurrencies(settled(None, selection={"scenario": "Offline"})) == [4, 8, 16]


@pytest.mark.parametrize(("chosen", "expected"), [(1, (1, 2)), (2, (1, 2, 4)), (8, (4, 8, 16)), (16, (8, 16))], ids=str)
def test_the_loads_around_one(chosen: int, expected: tuple[int, ...]) -> None:
    assert around((1, 2, 4, 8, 16), chosen) == expected


@pytest.mark.parametrize(("lowest", "expected"), [(1, ()), (2, (1,)), (8, (1, 2, 4)), (16, (2, 4, 8))], ids=str)
def test_the_loads_below_one(lowest: int, expected: tuple[int, ...]) -> None:
    missed = Violation(Constraint("P99LatencyMicroseconds", None, 6000), 9000, 0.5)
    assert beyond((1, 2, 4, 8, 16), {lowest, 16}, missed) == expected


@pytest.mark.parametrize(("highest", "expected"), [(16, ()), (8, (16,)), (1, (2, 4, 8))], ids=str)
def test_the_loads_above_one(highest: int, expected: tuple[int, ...]) -> None:
    missed = Violation(Constraint("Throughput", 1000, None), 500, 0.5)
    assert beyond((1, 2, 4, 8, 16), {1, highest}, missed) == expected


def test_higher_loads_are_measured_until_one_has_the_throughput_that_is_asked_for() -> None:
    def slow_preview(stage: str, candidate: str, request: Any) -> Script:
        return Script(speed=0.4) if stage == "measure" else GOOD

    asked = {"objectives": [{"metric": "p99Latency"}], "constraints": {"throughput": 600}}
    cluster = a_deployment().one_candidate().asking(selection=asked).faring(slow_preview).settled().cluster()
    assert cluster.candidate("onnx-fp32")["load"] == "batch 1, concurrency 1"
    assert previewed(cluster) == [(1, 2), (4, 8, 16)]
    assert cluster.condition("Ready")["status"] == "True"
    assert float(cluster.status["serving"]["throughput"]) >= 600


def test_steps_in_another_environment_are_not_put_together() -> None:
    higher, lower = (
        MeasureResult((row(each, 100, 4000),), replace(ENVIRONMENT, cpu=cpu)) for each, cpu in ((8, "one"), (4, "one"))
    )
    assert [each.concurrency for each in merged([higher, lower]).online] == [4, 8]
    elsewhere = replace(lower, environment=replace(ENVIRONMENT, cpu="other"))
    assert [each.concurrency for each in merged([higher, elsewhere]).online] == [4]


def test_steps_put_together_keep_the_times_of_each_load() -> None:
    higher, lower = (
        MeasureResult(
            (row(each, 100, 4000), row(each + 1, 100, 4000)),
            ENVIRONMENT,
            steps=(StepTimes("network", (each, each + 1), (10 * each, 10 * each + 10)),),
        )
        for each in (8, 4)
    )
    assert merged([higher, lower]).steps == (StepTimes("network", (4, 5, 8, 9), (40, 50, 80, 90)),)
    for unlike in ((), (replace(lower.steps[0], model="other"),)):
        assert merged([higher, replace(lower, steps=unlike)]).steps == ()
