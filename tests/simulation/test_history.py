"""What served before stays within reach, and only that: records and claim are cleaned together."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import UNANCHORED
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason
from triton_operator.observed.history import History, State
from triton_operator.observed.snapshot import observe
from triton_operator.planning import retention


@pytest.fixture
def serving() -> Cluster:
    """A cluster whose object is Ready."""
    return a_deployment().asking(**UNANCHORED).serving().cluster()


def source(version: int) -> dict[str, Any]:
    return {"source": {"uri": f"pvc://models/v{version}"}}


def versions(cluster: Cluster, last: int) -> Iterator[int]:
    """Each becomes Ready and serves."""
    for version in range(2, last + 1):
        cluster.edit(**source(version))
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"
        yield version


def test_going_back_runs_nothing_again(serving: Cluster) -> None:
    first = serving.spec["source"]
    for _ in versions(serving, 4):
        assert serving.started("clean") == 0, "three earlier states are kept by default"
    story = len(serving.story)
    serving.edit(source=first)
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"
    assert serving.story[story:] == ["server", "promotion"]


def test_one_state_too_many_cleans_records_and_claim(serving: Cluster) -> None:
    serving.edit(revisionHistoryLimit=1)
    for version in versions(serving, 4):
        assert serving.started("clean") == version - 2
        observed = observe("digits", serving.objects.values())
        assert len(observed.history.served) == 2
        missing = observed.history.records - observed.records.keys()
        assert not missing, "going back would run it again"
        beyond = {name for name in observed.records.keys() - observed.history.records if not name.startswith("clean")}
        assert beyond == set()


def test_a_clean_job_sees_the_records_without_what_was_dropped(serving: Cluster) -> None:
    serving.edit(revisionHistoryLimit=0, **source(2))
    serving.until(lambda serving: serving.started("clean") != 0)
    observed = observe("digits", serving.objects.values())
    recorded = serving.objects["ConfigMap", "digits-results"]["data"]
    assert {name for name in recorded if name.startswith("convert")} <= observed.history.records
    (job,) = [each for each in serving.of_kind("Job") if "-clean-" in each["metadata"]["name"]]
    marks = [each["configMap"] for each in job["spec"]["template"]["spec"]["volumes"] if "configMap" in each]
    assert marks == [{"name": "digits-results"}], "without it, nothing would be marked"


def test_a_clean_job_that_an_outage_fails_is_made_again(serving: Cluster) -> None:
    evicted = Script(exit_code=42, reason=Reason.STORAGE_FULL, message="no space is left")
    serving.scripts = when("clean", evicted)
    serving.edit(revisionHistoryLimit=0, **source(2))
    serving.until(lambda serving: serving.started("clean") == 2)
    assert serving.condition("Ready")["status"] == "True"
    serving.scripts = when("clean", GOOD)
    serving.settle()
    data = serving.objects["ConfigMap", "digits-results"]["data"]
    assert not [each for each in data if each.startswith("failure.")]


RECORDED = ("ConfigMap", "digits-results")


def test_an_entry_that_cannot_be_read_is_kept_and_nothing_is_cleaned(serving: Cluster) -> None:
    serving.edit(revisionHistoryLimit=0)
    serving.settle()
    newer = {"convert.0a1b": '{"stage":"convert","key":"0a1b","result":{"newer":1}}', "distill.0a1b": "{}"}
    serving.objects[RECORDED]["data"] |= newer
    for _ in versions(serving, 3):
        assert serving.started("clean") == 0
        assert newer.items() <= serving.objects[RECORDED]["data"].items()
    for name in newer:
        del serving.objects[RECORDED]["data"][name]
    serving.settle()
    assert serving.started("clean") == 1


def test_a_history_that_cannot_be_read_is_not_replaced(serving: Cluster) -> None:
    serving.edit(revisionHistoryLimit=0)
    serving.objects[RECORDED]["data"]["history"] = "of a newer version"
    for _ in versions(serving, 3):
        assert serving.objects[RECORDED]["data"]["history"] == "of a newer version"
    assert serving.started("clean") == 0


@pytest.mark.parametrize(("bound", "value"), [("KEPT", 2), ("ROOM_BYTES", 22_000)])
def test_what_serves_and_the_history_come_before_other_records(
    serving: Cluster, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(retention, bound, value)
    needed = observe("digits", serving.objects.values()).history.records
    serving.scripts = when("profile", FINAL)
    for version in range(2, 6):
        serving.edit(**source(version))
        serving.settle()
        assert serving.condition("Ready")["status"] == "False"
        assert needed <= observe("digits", serving.objects.values()).records.keys()
    assert serving.serving() is not None


def test_a_failed_candidate_and_a_lowered_limit_are_no_reason_to_lose_what_serves() -> None:
    history = History()
    for state in ("abc", "abd", "abe", "abc"):
        history = history.with_served(State(tuple(state), "b"), 3)
    assert ["".join(each.records) for each in history.served] == ["abc", "abe", "abd"]
    assert history.dropped == 0
    last = State(tuple("abc"), "b", {"server": "example/server:1"})
    lowered = history.with_served(last, 0)
    assert (lowered.served, lowered.dropped) == ((last,), 1)
    assert lowered.with_served(last, 0) == lowered
    assert History.from_json(lowered.to_json()) == lowered
    assert History.from_json("edited by hand") == History()
