"""What is taken of a ranking: with an approval, where nothing meets the constraints, beside what serves already."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import answers
from tests.simulation.answers import GOOD, MIX, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import CANDIDATES, a_model, candidate
from tests.simulation.edits import another_source
from tests.states.deployment import a_deployment
from triton_converters.contract.results import Row

TOO_SLOW = {"constraints": {"p99Latency": "4ms"}}


def edit_selection(cluster: Cluster, **fields: Any) -> None:
    """The user changes fields of spec.selection."""
    cluster.edit(selection={**cluster.spec["selection"], **fields})


def reasons(cluster: Cluster, *kinds: str) -> list[tuple[str, str]]:
    return [(cluster.condition(each)["status"], cluster.condition(each)["reason"]) for each in kinds]


@pytest.fixture(scope="module")
def awaited() -> Cluster:
    """With a ranking that nobody approved yet; not to be changed."""
    return a_deployment().asking(selection={"approval": "Manual"}).settled().cluster()


@pytest.fixture
def awaiting(awaited: Cluster) -> Cluster:
    return deepcopy(awaited)


# Approval -----------------------------------------------------------------------------------------------------------


def test_nothing_is_rolled_out_before_somebody_approves(awaiting: Cluster) -> None:
    assert reasons(awaiting, "Ready", "Reconciling", "Stalled", "Selected") == [
        ("False", "AwaitingApproval"),
        ("False", "AwaitingApproval"),
        ("False", "NoStall"),
        ("Unknown", "AwaitingApproval"),
    ]
    assert awaiting.of_kind("Deployment") == []
    best = awaiting.candidate("onnx-fp32")
    assert (best["rank"], best["reason"]) == (1, "AwaitingApproval")
    assert f"approvedRevision: {best['revision']}" in awaiting.condition("Ready")["message"]
    assert not [each for each in awaiting.events if each.type == "Warning"]


@pytest.mark.parametrize("name", ["onnx-fp32", "ts-script-fp32"])
def test_the_approved_revision_serves_and_nothing_is_done_again(awaiting: Cluster, name: str) -> None:
    story = len(awaiting.story)
    edit_selection(awaiting, approvedRevision=awaiting.candidate(name)["revision"])
    awaiting.settle()
    assert awaiting.story[story:] == ["server", f"measure {name}", "service"]
    assert awaiting.status["serving"]["candidate"] == name
    assert reasons(awaiting, "Ready", "Selected") == [("True", "Ready"), ("True", "Selected")]


def test_an_operator_with_newer_images_proceeds_with_what_was_approved(awaiting: Cluster) -> None:
    story = len(awaiting.story)
    awaiting.settings = replace(awaiting.settings, server_image="s:2", converter_image="c:2")
    edit_selection(awaiting, approvedRevision=awaiting.candidate("onnx-fp32")["revision"])
    awaiting.settle()
    assert awaiting.story[story:] == ["server", "measure onnx-fp32", "service"]
    assert awaiting.status["images"]["server"] == "example/server:1"


def test_a_key_that_is_no_candidates_is_named(awaiting: Cluster) -> None:
    edit_selection(awaiting, approvedRevision="0123456789abcdef")
    awaiting.settle()
    assert reasons(awaiting, "Selected", "Stalled") == [("False", "ApprovalInvalid"), ("True", "ApprovalInvalid")]
    message = awaiting.condition("Ready")["message"]
    assert "0123456789abcdef is not the key of a candidate" in message
    assert f"onnx-fp32 {awaiting.candidate('onnx-fp32')['revision']}" in message
    assert awaiting.of_kind("Deployment") == []


def test_a_revision_that_failed_a_gate_is_not_to_be_approved() -> None:
    failed = Script(sidecar_crashes="failed to load all models")
    cluster = (
        a_deployment()
        .asking(selection={"approval": "Manual"})
        .faring(when("profile", failed, "onnx-fp16"))
        .settled()
        .cluster()
    )
    edit_selection(cluster, approvedRevision=cluster.candidate("onnx-fp16")["revision"])
    cluster.settle()
    assert reasons(cluster, "Selected") == [("False", "ApprovalInvalid")]
    assert "is onnx-fp16, which is Failed" in cluster.condition("Ready")["message"]


def test_what_serves_goes_on_while_its_successor_is_not_approved(awaiting: Cluster) -> None:
    edit_selection(awaiting, approvedRevision=awaiting.candidate("onnx-fp32")["revision"])
    awaiting.settle()
    before, serving = awaiting.serving(), awaiting.status["serving"]
    awaiting.edit(another_source())
    awaiting.settle()
    assert reasons(awaiting, "Ready", "Stalled") == [("False", "AwaitingApproval"), ("False", "NoStall")]
    assert (awaiting.serving(), awaiting.status["serving"]) == (before, serving)
    assert awaiting.condition("Available")["status"] == "True"
    edit_selection(awaiting, approvedRevision=awaiting.candidate("onnx-fp32")["revision"])
    awaiting.settle()
    assert awaiting.serving() != before
    assert awaiting.condition("Ready")["status"] == "True"


def test_what_served_and_was_lost_with_its_records_is_no_object_that_never_served(awaiting: Cluster) -> None:
    edit_selection(awaiting, approvedRevision=awaiting.candidate("onnx-fp32")["revision"])
    awaiting.settle()
    lost = awaiting.serving() or ""
    edit_selection(awaiting, approvedRevision=None)
    awaiting.edit(another_source())
    awaiting.settle()
    awaiting.delete("ConfigMap", "digits-results")
    awaiting.delete("Deployment", lost)
    awaiting.settle()
    assert reasons(awaiting, "Ready") == [("False", "AwaitingApproval")]
    available = awaiting.condition("Available")
    assert available["status"] == "False"
    assert available["message"].startswith(f"Deployment {lost}, to which Service digits points, is gone")


def test_an_approval_searches_nothing_again() -> None:
    cluster = a_deployment().asking(selection={"approval": "Manual", "search": {"mode": "Quick"}}).settled().cluster()
    story = len(cluster.story)
    edit_selection(cluster, approvedRevision=cluster.candidate("onnx-fp16.tuned")["revision"])
    cluster.settle()
    assert cluster.story[story:] == ["server", "measure onnx-fp16.tuned", "service"]
    assert cluster.status["serving"]["candidate"] == "onnx-fp16.tuned"


def test_what_serves_needs_no_approval(serving: Cluster) -> None:
    story = list(serving.story)
    serving.edit(selection={"approval": "Manual"})
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"
    assert serving.story == story


# Where nothing meets the constraints --------------------------------------------------------------------------------


def test_the_closest_is_rolled_out_where_the_spec_says_so() -> None:
    cluster = a_deployment().asking(selection={**TOO_SLOW, "fallback": "Closest"}).settled().cluster()
    assert reasons(cluster, "Ready", "Selected", "PerformanceMeasured") == [
        ("True", "Ready"),
        ("True", "ClosestSelected"),
        ("True", "Measured"),
    ]
    assert "(25.0 % beyond the bound)" in cluster.condition("Selected")["message"]
    assert "which spec.selection.fallback allows" in cluster.condition("PerformanceMeasured")["message"]
    assert cluster.candidate("onnx-fp32")["marginPercent"] == "-25.0"


def test_the_closest_replaces_what_serves(serving: Cluster) -> None:
    before = serving.serving()
    serving.edit(another_source(), selection={**TOO_SLOW, "fallback": "Closest"})
    serving.settle()
    assert serving.serving() != before
    assert serving.condition("Ready")["status"] == "True"


def test_an_approval_does_not_make_up_for_a_broken_constraint() -> None:
    cluster = a_deployment().asking(selection={**TOO_SLOW, "approval": "Manual"}).settled().cluster()
    assert reasons(cluster, "Selected") == [("False", "ConstraintsNotMet")]
    edit_selection(cluster, approvedRevision=cluster.candidate("ts-script-fp32")["revision"])
    cluster.settle()
    assert reasons(cluster, "Selected", "Stalled") == [("False", "ConstraintsNotMet"), ("True", "ConstraintsNotMet")]
    assert "the approved candidate breaks a constraint: ts-script-fp32" in cluster.condition("Selected")["message"]
    edit_selection(cluster, fallback="Closest")
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "ts-script-fp32"
    assert reasons(cluster, "Selected") == [("True", "Selected")]
    selected = cluster.condition("Selected")["message"]
    assert selected.startswith("approved: ")
    assert "it breaks a constraint, which spec.selection.fallback allows: ts-script-fp32" in selected


# Beside what serves -------------------------------------------------------------------------------------------------

FEWER, FASTER = CANDIDATES[:2], [*CANDIDATES[:2], candidate("onnx-fp16")]


@pytest.fixture(scope="module")
def traced() -> Cluster:
    """ts-trace-fp32 serves; onnx-fp16 would be half as fast again. Not to be changed."""
    return a_deployment().asking(models=[a_model(candidates=FEWER)]).settled().cluster()


@pytest.mark.parametrize(("minimum", "taken"), [(0, "onnx-fp16"), (50, "onnx-fp16"), (51, "ts-trace-fp32")])
def test_what_serves_is_kept_unless_another_is_better_by_enough(traced: Cluster, minimum: int, taken: str) -> None:
    cluster = deepcopy(traced)
    cluster.edit(models=[a_model(candidates=FASTER)], selection={"minImprovementPercent": minimum})
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == taken
    assert cluster.condition("Ready")["status"] == "True"
    if taken == "ts-trace-fp32":
        assert cluster.started("measure") == 1
        selected = cluster.condition("Selected")
        assert (selected["status"], selected["reason"]) == ("True", "Kept")
        assert "onnx-fp16 is only 50.0 % better, and spec.selection.minImprovementPercent is 51" in selected["message"]
        assert (cluster.candidate("onnx-fp16")["rank"], cluster.candidate("onnx-fp16")["state"]) == (1, "Passed")


def test_figures_of_another_environment_replace_nothing(traced: Cluster) -> None:
    cluster = deepcopy(traced)
    cluster.scripts = when("profile", Script(cpu="another CPU"), "onnx-fp16")
    cluster.edit(models=[a_model(candidates=FASTER)], selection={"minImprovementPercent": 1})
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"
    assert "processor differs" in cluster.condition("Selected")["message"]


def test_what_breaks_a_constraint_is_not_kept(traced: Cluster) -> None:
    cluster = deepcopy(traced)
    selection = {"minImprovementPercent": 1000, "constraints": {"throughput": 2000}}
    cluster.edit(models=[a_model(candidates=FASTER)], selection=selection)
    cluster.scripts = when("measure", Script(speed=3.0))
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp16"


def test_a_new_source_always_replaces(traced: Cluster) -> None:
    cluster = deepcopy(traced)
    before = cluster.serving()
    cluster.edit(another_source(), selection={"minImprovementPercent": 1000})
    cluster.settle()
    assert cluster.serving() != before


EQUAL = {"onnx-fp32": 1.0, "onnx-fp16": 2000 / 1500}
"""The speeds at which both are as fast as each other."""


def gains(cluster: Cluster, best: str, by: float, p99: int = 5000) -> None:
    """From now on that candidate measures better than the other one. ``p99``: of the other one."""

    def scripts(stage: str, name: str, request: Any) -> Script:
        if stage != "profile":
            return Script()
        return Script(speed=EQUAL[name] * by) if name == best else Script(speed=EQUAL[name], p99=p99)

    cluster.scripts = scripts


def next_source(cluster: Cluster, number: int) -> str:
    """A new source is published, measured and serves; the name of the candidate that does."""
    cluster.edit(source={"uri": f"pvc://models/v{number}"})
    before = cluster.serving()
    cluster.settle()
    assert cluster.serving() != before, "the new source replaces the old one, whichever candidate that takes"
    assert cluster.condition("Ready")["status"] == "True"
    return str(cluster.status["serving"]["candidate"])


@pytest.fixture
def pair() -> Cluster:
    """onnx-fp32 serves, as fast as onnx-fp16."""
    cluster = a_deployment().candidates("onnx-fp32", "onnx-fp16").cluster()
    gains(cluster, "onnx-fp32", 1.0)
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    return cluster


def test_noise_between_sources_changes_no_format(pair: Cluster) -> None:
    for number, best in enumerate(["onnx-fp16", "onnx-fp32", "onnx-fp16", "onnx-fp32"]):
        gains(pair, best, 1.15)
        assert next_source(pair, number) == "onnx-fp32"
        assert reasons(pair, "Selected") == [("True", "Selected" if best == "onnx-fp32" else "Kept")]
    gains(pair, "onnx-fp16", 1.15)
    next_source(pair, 9)
    assert "onnx-fp16 is only 15.0 % better" in pair.condition("Selected")["message"]
    assert "the active candidate is kept" in pair.condition("Selected")["message"]


def test_a_candidate_that_is_really_better_wins_with_the_next_source(pair: Cluster) -> None:
    gains(pair, "onnx-fp16", 1.3)
    assert next_source(pair, 1) == "onnx-fp16"
    gains(pair, "onnx-fp32", 1.15)
    assert next_source(pair, 2) == "onnx-fp16", "from now on it is the one that is kept"


def test_with_another_source_too_a_constraint_comes_first(pair: Cluster) -> None:
    gains(pair, "onnx-fp16", 1.0, p99=11_000)
    assert next_source(pair, 1) == "onnx-fp16", "the limit is 10 ms"


def test_where_the_active_candidate_failed_the_best_of_the_others_serves(pair: Cluster) -> None:
    pair.scripts = when("profile", Script(sidecar_crashes="failed to load all models"), "onnx-fp32")
    assert next_source(pair, 1) == "onnx-fp16"


# A new source beside the last ---------------------------------------------------------------------------------------


def regression(**fields: Any) -> dict[str, Any]:
    return {"performance": {"regression": {"maxPercent": 10, **fields}}}


def test_a_slower_source_serves_and_a_warning_says_so(serving: Cluster) -> None:
    serving.scripts = when("measure", Script(speed=0.8))
    serving.edit(another_source(), **regression())
    serving.settle()
    assert reasons(serving, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", "PerformanceRegressed")]
    assert (
        "20.0 % worse than the previously served source sha256:" in serving.condition("PerformanceMeasured")["message"]
    )
    assert [each.type for each in serving.events if each.reason == "PerformanceRegressed"] == ["Warning"]
    assert serving.started("measure") == 2


def test_sources_that_were_chosen_at_loads_far_apart_are_compared_by_their_profiles(serving: Cluster) -> None:
    serving.scripts = when("profile", Script(p99=8000))
    serving.edit(another_source(), **regression(), selection={"objectives": [{"metric": "p99Latency"}]})
    serving.settle()
    assert reasons(serving, "PerformanceMeasured") == [("True", "PerformanceRegressed")]
    message = serving.condition("PerformanceMeasured")["message"]
    assert "37.5 % worse than the previously served source" in message
    assert message.endswith("online at batch 1, concurrency 1 by the profiles")


def test_a_slower_source_does_not_serve_where_that_blocks(serving: Cluster) -> None:
    before = serving.serving()
    serving.scripts = when("measure", Script(speed=0.8))
    serving.edit(another_source(), **regression(block=True))
    serving.settle()
    assert serving.serving() == before
    assert reasons(serving, "Ready", "Stalled", "Available") == [
        ("False", "PerformanceRegressed"),
        ("True", "PerformanceRegressed"),
        ("True", "Available"),
    ]
    serving.edit(**regression(block=False))
    serving.settle()
    assert serving.serving() != before
    serving.edit(**regression(block=True))
    serving.settle()
    assert serving.condition("Ready")["status"] == "True", "it serves already"


@pytest.mark.parametrize("speed", [0.91, 1.0, 1.3])
def test_a_source_that_is_not_much_slower_is_no_regression(serving: Cluster, speed: float) -> None:
    serving.scripts = when("measure", Script(speed=speed))
    serving.edit(another_source(), **regression())
    serving.settle()
    assert reasons(serving, "PerformanceMeasured") == [("True", "Measured")]
    assert "the previously served source" in serving.condition("PerformanceMeasured")["message"]


@pytest.mark.parametrize(
    ("script", "fields", "obstacle"),
    [
        (Script(speed=0.5, cpu="another CPU"), {}, "processor differs"),
        (
            Script(speed=0.5, mix=MIX),
            {},
            "the samples' shapes differ: one shape and 12 shapes, INPUT__0 3 to 128 (median 17)",
        ),
        (
            Script(speed=0.5),
            {"online": {"concurrency": {"start": 5, "end": 6}}},
            "no load was measured for both: batch size/concurrency 1/4, 1/8, 1/16 and 1/5, 1/6",
        ),
        (Script(speed=0.5), {"online": {"batchSize": 2, "concurrency": {"start": 1, "end": 2}}}, "and 2/1, 2/2"),
        (
            Script(speed=0.5, command="perf_analyzer -i http -f online-batch1-concurrency1.csv"),
            {},
            "protocol differs: none and http",
        ),
        (
            Script(speed=0.5, command="perf_analyzer --shape X:3,8 --shape Y:4 -f online-batch1-concurrency1.csv"),
            {},
            "the inputs' shape differs: none and X:3,8 Y:4",
        ),
    ],
    ids=["processor", "samples", "concurrencies", "batch size", "protocol", "shapes"],
)
def test_what_was_measured_otherwise_is_not_compared_and_blocks_nothing(
    serving: Cluster, script: Script, fields: dict[str, Any], obstacle: str
) -> None:
    serving.scripts = when("measure", script)
    asked = regression(block=True)["performance"]
    serving.edit(another_source(), performance={**asked, **fields})
    serving.settle()
    assert reasons(serving, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", "NotCompared")]
    assert obstacle in serving.condition("PerformanceMeasured")["message"]
    assert [each.type for each in serving.events if each.reason == "NotCompared"] == ["Normal"]


@pytest.mark.parametrize(
    ("concurrency", "load", "reason"),
    [({"start": 2, "end": 6}, 4, "PerformanceRegressed"), ({"start": 1, "end": 2}, 2, "PerformanceRegressed")],
    ids=["its best row is at another load", "the last one's best load is gone"],
)
def test_rows_of_one_load_are_compared(serving: Cluster, concurrency: dict[str, int], load: int, reason: str) -> None:
    # Six at once are better than four: best row beside best row, this source would be 8.6 % worse.
    serving.scripts = measured_slowly
    asked = regression()["performance"]
    serving.edit(another_source(), performance={**asked, "online": {"concurrency": concurrency}})
    serving.settle()
    assert reasons(serving, "PerformanceMeasured") == [("True", reason)]
    message = serving.condition("PerformanceMeasured")["message"]
    assert "20.0 % worse than the previously served source sha256:" in message
    assert f"online at batch 1, concurrency {load}" in message


def measured_slowly(stage: str, candidate: str, request: Any) -> Script:
    """The profile and the preview are a fifth slower."""
    return Script(speed=0.8) if stage in ("profile", "measure") else GOOD


OFFLINE = {"scenario": "Offline"}


@pytest.mark.parametrize(
    ("slow", "reason"), [("profile", "PerformanceRegressed"), ("measure", "Measured")], ids=["offline", "online"]
)
def test_offline_rows_are_compared_where_they_are_judged(serving: Cluster, slow: str, reason: str) -> None:
    serving.scripts = when(slow, Script(speed=0.8))
    serving.edit(another_source(), selection=OFFLINE, **regression())
    serving.settle()
    assert reasons(serving, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", reason)]
    words = "20.0 % worse" if slow == "profile" else "0.0 % better"
    message = serving.condition("PerformanceMeasured")["message"]
    assert words in message
    assert "offline at batch 8, concurrency 1" in message


def test_offline_rows_that_nobody_recorded_are_not_compared(serving: Cluster) -> None:
    recorded = serving.objects["ConfigMap", "digits-results"]["data"]
    history = json.loads(recorded["history"])
    recorded["history"] = json.dumps(history | {"profiles": [""] * len(history["served"])})
    serving.scripts = when("profile", Script(speed=0.5))
    serving.edit(another_source(), selection=OFFLINE, **regression(block=True))
    serving.settle()
    assert reasons(serving, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", "NotCompared")]
    assert "its offline measurements are not recorded" in serving.condition("PerformanceMeasured")["message"]


@pytest.mark.parametrize(("p99", "reason"), [(10500, "Measured"), (11500, "PerformanceRegressed")])
def test_a_source_that_is_further_beyond_a_constraint_is_worse(serving: Cluster, p99: int, reason: str) -> None:
    serving.scripts = when("measure", Script(p99=p99))
    edit_selection(serving, fallback="Closest")
    serving.edit(another_source(), **regression())
    serving.settle()
    assert reasons(serving, "PerformanceMeasured") == [("True", reason)]
    message = serving.condition("PerformanceMeasured")["message"]
    assert f"which breaks a constraint: p99Latency {p99 / 1000:g}ms, at most 10ms" in message


def test_the_first_source_is_said_to_be_compared_with_none() -> None:
    cluster = a_deployment().asking(**regression(block=True)).settled().cluster()
    assert reasons(cluster, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", "Measured")]
    assert "no record of another source that served" in cluster.condition("PerformanceMeasured")["message"]


def test_another_configuration_of_the_same_source_is_not_compared(serving: Cluster) -> None:
    serving.scripts = when("measure", Script(speed=0.5))
    serving.edit(models=[a_model(config={"maxBatchSize": 16, "dynamicBatching": {}})], **regression(block=True))
    serving.settle()
    assert reasons(serving, "Ready", "PerformanceMeasured") == [("True", "Ready"), ("True", "Measured")]


def test_memory_that_was_not_measured_is_said_to_be_so() -> None:
    cluster = a_deployment().asking(selection={"constraints": {"memory": "8Gi"}}).settled().cluster()
    message = cluster.condition("Selected")["message"]
    assert "memory was not measured, at most 8Gi; relax the constraint" in message
    assert "inf " not in json.dumps(cluster.status)
    assert {each.get("marginPercent") for each in cluster.status["candidates"]} == {None}


def test_the_condition_and_the_status_tell_the_same_row_whatever_sweep_is_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound on another sweep says nothing about the one through the preview Service."""

    def slower(request: Any, *_: Any) -> tuple[Row, ...]:
        return tuple(answers.row(each, 1000.0 + 100 * each, 1000 * each) for each in request.online.concurrencies)

    monkeypatch.setattr(answers, "_online", slower)
    cluster = (
        a_deployment()
        .asking(selection={"scenario": "Offline", "constraints": {"p99Latency": "2500us"}})
        .faring(when("profile", Script(p99=2000)))
        .settled()
        .cluster()
    )
    assert cluster.condition("PerformanceMeasured")["message"].startswith("1400 inferences/s, p99Latency 4000us at ")
    serving = cluster.status["serving"]
    assert (serving["throughput"], serving["p99Latency"]) == ("1400.0", "4ms")


def test_who_approved_nothing_is_not_told_that_the_approved_candidate_breaks_a_constraint(pair: Cluster) -> None:
    """Both are as far from the bound, so the one that served is kept, and then breaks it."""
    fp16, fp32 = Script(speed=EQUAL["onnx-fp16"] * 1.15, p99=8000), Script(p99=8000)
    pair.scripts = lambda stage, name, _: Script() if stage != "profile" else fp16 if name == "onnx-fp16" else fp32
    pair.edit(another_source(), selection={"constraints": {"p99Latency": "4ms"}})
    pair.settle()
    message = pair.condition("Selected")["message"]
    assert "no candidate meets every constraint" in message
    assert "approved" not in message
