"""A source that is followed: what is taken, what waits, what is told, and what none of it costs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import Script
from tests.simulation.api_server import KEY, ApiServer
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.edits import only
from tests.simulation.objects import SETTINGS
from tests.simulation.registry import Model, Registry, following, until, work_off
from tests.simulation.test_restored import restored
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import FOLLOWING
from triton_operator.jobs.look import DEADLINE_SECONDS, MOST_LOOKS
from triton_operator.kube.errors import UnavailableError
from triton_operator.names import REQUEST_ANNOTATION, STAGE_LABEL
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler

HOUR = timedelta(hours=1.2)
"""Longer than the interval with its spread."""
WORSE = Model(accuracy=0.1)


def serving(scheme: str = "hf", **source: Any) -> tuple[Cluster, Registry]:
    """A cluster whose object serves the first version."""
    cluster, registry = following(scheme, **source)
    work_off(cluster)
    assert registry.served(cluster) == "v1"
    return cluster, registry


def offer(cluster: Cluster, registry: Registry, version: str, looks: int = 1) -> list[str]:
    """The server has another version for so many looks; what was started meanwhile, but for looks."""
    registry.offers, before = version, len(cluster.story)
    for _ in range(looks):
        until(cluster, cluster.now + HOUR)
    return [each for each in cluster.story[before:] if each != "look"]


def newest(cluster: Cluster) -> tuple[str, str]:
    """Status and reason of UpToDate."""
    condition = cluster.condition("UpToDate")
    return condition["status"], condition["reason"]


def message(cluster: Cluster) -> str:
    return str(cluster.condition("UpToDate")["message"])


def ready(cluster: Cluster) -> bool:
    return all(cluster.condition(kind)["status"] == status for kind, status in READY.items())


READY = {"Ready": "True", "Reconciling": "False", "Stalled": "False"}


def test_looks_that_find_nothing_new_leave_nothing_behind() -> None:
    cluster, registry = serving()
    before, objects = cluster.status, {key for key in cluster.objects if key[0] != "Pod"}
    entries = {*cluster.objects["ConfigMap", "digits-results"]["data"]}
    assert offer(cluster, registry, "v1", looks=5) == []
    assert len(registry.looked) == 6
    assert {key for key in cluster.objects if key[0] != "Pod"} == objects
    assert {*cluster.objects["ConfigMap", "digits-results"]["data"]} == entries
    told = {"conditions", "serving", "candidates", "performance", "images"}
    assert {each: cluster.status[each] for each in told} == {each: before[each] for each in told}
    assert cluster.status["source"]["lastCheckedAt"] > before["source"]["lastCheckedAt"]


def test_a_look_writes_the_status_once() -> None:
    cluster, _ = serving()
    cluster.now = max(cluster.now, cluster.due or cluster.now)
    written: list[str] = []
    api = ApiServer(cluster, lambda verb, body: written.append(f"{verb} {body['kind']}"))
    changes = 1
    for _ in range(10):
        if changes:
            cluster.report(api)
        changes = cluster.step()
    looks = ["create Job", "apply ConfigMap", "delete Job", "status TritonDeployment"]
    assert [each for each in written if each != "apply Job"] == looks


@pytest.mark.parametrize(("scheme", "looks"), [("oci", 1), ("s3", 2)])
def test_a_version_is_taken_once_looks_are_sure_of_it(scheme: str, looks: int) -> None:
    cluster, registry = serving(scheme)
    for number in range(1, looks + 1):
        started = offer(cluster, registry, "v2")
        assert bool(started) is (number == looks)
        if not started:
            assert newest(cluster) == ("False", "VersionUnsettled")
            assert ready(cluster)
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("True", "Ready"))
    assert [each.message for each in cluster.events if each.reason == Reason.NEWER_VERSION] == [
        "UpToDate: the source offers tag v2, and offered tag v1 before"
    ]


def test_looks_that_fail_are_told_beside_a_version_that_waits() -> None:
    cluster, registry = serving(onChange="Stage")
    offer(cluster, registry, "v2")
    registry.away_with(Reason.SOURCE_ACCESS_DENIED)
    offer(cluster, registry, "v2")
    assert newest(cluster) == ("False", "AwaitingApproval")
    assert "looks have failed since" in message(cluster)
    assert message(cluster).endswith("GET /v2: SourceAccessDenied")
    registry.away = None
    offer(cluster, registry, "v2")
    assert "looks have failed" not in message(cluster)


def test_a_staged_version_serves_once_a_person_approves_it() -> None:
    cluster, registry = serving(onChange="Stage")
    offer(cluster, registry, "v2")
    assert (registry.served(cluster), newest(cluster), ready(cluster)) == ("v1", ("False", "AwaitingApproval"), True)
    assert message(cluster).startswith("tag v2, found at ")
    assert "onChange" in message(cluster)
    offer(cluster, registry, "v3")
    assert registry.served(cluster) == "v1"
    (candidate,) = [each for each in cluster.status["candidates"] if each["reason"] == "AwaitingApproval"]
    cluster.edit(selection=cluster.spec["selection"] | {"approvedRevision": candidate["revision"]})
    work_off(cluster)
    assert (registry.served(cluster), newest(cluster)) == ("v3", ("True", "Ready"))
    offer(cluster, registry, "v4")
    assert (registry.served(cluster), newest(cluster)) == ("v3", ("False", "AwaitingApproval"))


def test_an_edit_of_what_serves_needs_no_approval_where_versions_are_staged() -> None:
    cluster, _ = serving(onChange="Stage")
    cluster.edit(only("ts-trace-fp32"))
    work_off(cluster)
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"
    assert newest(cluster) == ("True", "Ready")


def test_an_edit_of_the_source_needs_no_approval_either() -> None:
    cluster, registry = serving(onChange="Stage")
    registry.models["v2"] = Model(outputs=12)
    registry.offers = "v2"
    cluster.edit(source=cluster.spec["source"] | {"uri": "hf://acme/other"})
    work_off(cluster)
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("True", "Ready"))
    offer(cluster, registry, "v3")
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("False", "AwaitingApproval"))


def test_a_version_with_other_outputs_is_staged_whatever_is_asked() -> None:
    cluster, registry = serving()
    registry.models["v2"] = Model(outputs=12)
    offer(cluster, registry, "v2")
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("False", "AwaitingApproval"))
    assert "its inputs or outputs are not those that clients know" in message(cluster)
    offer(cluster, registry, "v3")
    assert registry.served(cluster) == "v3"


def test_a_version_is_only_told_of_until_the_spec_asks_for_it() -> None:
    cluster, registry = serving(onChange="Notify")
    assert offer(cluster, registry, "v2", looks=3) == []
    assert (registry.served(cluster), newest(cluster), ready(cluster)) == ("v1", ("False", "NewerVersion"), True)
    cluster.edit(source=cluster.spec["source"] | {"onChange": "Serve"})
    work_off(cluster)
    assert registry.served(cluster) == "v2"


def test_a_version_that_was_refused_is_not_tried_again_until_something_changes() -> None:
    cluster, registry = serving()
    registry.models["v2"] = WORSE
    offer(cluster, registry, "v2")
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("False", "ThresholdNotMet"))
    # The alias goes back, and forth again, as many nights as it likes.
    for _ in range(3):
        assert offer(cluster, registry, "v1", looks=2) == []
        assert newest(cluster) == ("True", "Ready")
        assert offer(cluster, registry, "v2", looks=2) == []
        assert newest(cluster) == ("False", "ThresholdNotMet")
        assert "tag v2, found at " in message(cluster)
        assert "was refused at " in message(cluster)
    cluster.edit(accuracy={"thresholds": [{"metric": "accuracy", "min": 0.05}]})
    until(cluster, cluster.now + HOUR)
    assert newest(cluster)[1] != "ThresholdNotMet"


def test_going_back_to_a_version_that_served_runs_no_job() -> None:
    cluster, registry = serving()
    offer(cluster, registry, "v2")
    assert {*offer(cluster, registry, "v1", looks=2)} == {"server", "promotion"}
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("True", "Ready"))


@pytest.mark.parametrize("on_change", ["Serve", "Notify"])
def test_one_look_says_that_what_serves_is_wanted_again(on_change: str) -> None:
    cluster, registry = serving()
    registry.models["v2"] = WORSE
    offer(cluster, registry, "v2")
    assert newest(cluster) == ("False", "ThresholdNotMet")
    cluster.edit(source={**cluster.spec["source"], "onChange": on_change})
    assert offer(cluster, registry, "v1") == []
    assert newest(cluster) == ("True", "Ready")


def test_what_is_worked_on_is_finished_before_the_next_version_is_taken() -> None:
    cluster, registry = serving(interval="5m")
    registry.offers = "v2"
    slow = Script(hangs=True)
    cluster.scripts = lambda stage, name, request: slow if stage == "profile" else registry(stage, name, request)
    until(cluster, cluster.now + timedelta(minutes=7))
    registry.offers = "v3"
    until(cluster, cluster.now + timedelta(minutes=20))
    assert cluster.status["source"]["latest"]["version"] == "v3"
    assert message(cluster).startswith("tag v2")
    cluster.scripts = registry
    served: list[str] = []
    until(cluster, cluster.now + timedelta(minutes=7), lambda cluster: served.append(registry.served(cluster)))
    assert list(dict.fromkeys(served)) == ["v1", "v2", "v3"]


@pytest.mark.parametrize("scheme", ["hf", "s3"])
def test_versions_that_come_faster_than_they_serve_do_not_hide_that_what_serves_is_old(scheme: str) -> None:
    """The first ones do not pass, or are never found twice; the alert of what is outdated goes by the time."""
    cluster, registry = serving(scheme, interval="24h")
    assert "outdatedSince" not in cluster.status["source"]
    registry.models |= {f"v{number}": WORSE for number in range(2, 5)}
    for number in range(2, 5):
        registry.offers = f"v{number}"
        until(cluster, cluster.now + timedelta(hours=26.4))
        since = cluster.status["source"]["outdatedSince"]
        if number == 2:
            first = cluster.status["source"]["latest"]["foundAt"]
        assert (registry.served(cluster), since) == ("v1", first)
    registry.offers = "v9"
    until(cluster, cluster.now + timedelta(hours=60))
    assert registry.served(cluster) == "v9"
    assert "outdatedSince" not in cluster.status["source"]


def test_what_served_before_it_was_followed_may_be_outdated_too() -> None:
    cluster, registry = following()
    cluster.spec["source"] = {"uri": "hf://acme/digits"}
    work_off(cluster)
    registry.offers, registry.models["v2"] = "v2", WORSE
    cluster.edit(source={"uri": "hf://acme/digits", "interval": "1h"})
    until(cluster, cluster.now + 3 * HOUR)
    source = cluster.status["source"]
    assert source["outdatedSince"] == source["latest"]["foundAt"]


def test_an_object_that_always_serves_the_version_before_the_newest_is_not_outdated_for_long() -> None:
    cluster, registry = serving("s3", interval="1h")
    since: list[str] = []
    for number in range(2, 6):
        offer(cluster, registry, f"v{number}", looks=2)
        offer(cluster, registry, f"v{number}-half")
        since.append(cluster.status["source"]["outdatedSince"])
    assert len({*since}) == len(since)


def test_a_look_that_fails_is_told_and_changes_nothing() -> None:
    cluster, registry = serving()
    registry.away_with(Reason.SOURCE_ACCESS_DENIED)
    assert offer(cluster, registry, "v2", looks=2) == []
    assert (newest(cluster), ready(cluster)) == (("Unknown", "SourceAccessDenied"), True)
    assert "GET /v2: SourceAccessDenied" in message(cluster)
    warnings = [each for each in cluster.events if each.reason == Reason.SOURCE_ACCESS_DENIED]
    assert [(each.type, each.message[:8]) for each in warnings] == [("Warning", "UpToDate")]
    registry.away = None
    offer(cluster, registry, "v2")
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("True", "Ready"))


def test_the_first_look_is_repeated_before_the_interval_is_over() -> None:
    cluster, registry = following("oci", interval="24h")
    registry.away_with(Reason.SOURCE_UNREACHABLE)
    until(cluster, cluster.now + timedelta(minutes=3))
    for kind in ("SourceResolved", "Ready", "UpToDate"):
        assert cluster.condition(kind)["reason"] == "SourceUnreachable"
    assert cluster.condition("Stalled")["status"] == "True"
    registry.away = None
    until(cluster, cluster.now + timedelta(minutes=10))
    assert registry.served(cluster) == "v1"


def test_a_look_that_takes_too_long_is_ended() -> None:
    cluster, registry = serving()
    registry.away = Script(hangs=True)
    cluster.now = max(cluster.now, cluster.due or cluster.now)
    cluster.until_active("look")
    until(cluster, cluster.now + timedelta(seconds=DEADLINE_SECONDS - 30))
    assert cluster.active("look") == [""]
    until(cluster, cluster.now + timedelta(minutes=2))
    assert (cluster.active("look"), newest(cluster)) == ([], ("Unknown", "DeadlineExceeded"))


@pytest.mark.parametrize(
    "fields", [{"suspend": True}, {"rollout": {"revision": ""}}, {"source": {"uri": "hf://acme/digits"}}], ids=str
)
def test_nobody_looks_while_nothing_newer_is_wanted(fields: dict[str, Any]) -> None:
    cluster, registry = serving()
    if "rollout" in fields:
        fields = {"rollout": {"revision": cluster.status["serving"]["revision"]}}
    looks = len(registry.looked)
    cluster.edit(**fields)
    assert offer(cluster, registry, "v2", looks=3) == []
    assert (len(registry.looked), registry.served(cluster)) == (looks, "v1")


def test_another_source_is_followed_from_its_beginning() -> None:
    cluster, registry = serving(onChange="Notify")
    first = cluster.spec["source"]
    for uri, version in (("hf://acme/other", "w1"), (first["uri"], "v9")):
        registry.offers = version
        cluster.edit(source=first | {"uri": uri})
        work_off(cluster)
        assert (registry.served(cluster), newest(cluster)) == (version, ("True", "Ready"))


def test_a_source_that_is_no_longer_followed_stays_at_its_version() -> None:
    cluster, registry = serving()
    offer(cluster, registry, "v2")
    registry.offers = "v3"
    cluster.edit(source={"uri": "hf://acme/digits"})
    assert offer(cluster, registry, "v3") == []
    assert registry.served(cluster) == "v2"


@pytest.mark.parametrize(("on_change", "served"), [("Serve", "v2"), ("Stage", "v1"), ("Notify", "v1")])
def test_an_object_that_serves_already_may_be_followed(on_change: str, served: str) -> None:
    cluster, registry = following()
    cluster.spec["source"] = {"uri": "hf://acme/digits"}
    work_off(cluster)
    registry.offers = "v2"
    cluster.edit(source={"uri": "hf://acme/digits", "interval": "1h", "onChange": on_change})
    until(cluster, cluster.now + HOUR)
    assert (registry.served(cluster), cluster.condition("Ready")["status"]) == (served, "True")


def test_an_annotation_asks_for_a_look_at_once_and_is_answered() -> None:
    cluster, registry = serving()
    registry.offers = "v2"
    work_off(cluster)
    assert registry.served(cluster) == "v1"
    cluster.annotations[REQUEST_ANNOTATION] = "2026-11-30T02:00:00Z"
    work_off(cluster)
    assert (registry.served(cluster), cluster.status["lastHandledRequestAt"]) == ("v2", "2026-11-30T02:00:00Z")
    looks = len(registry.looked)
    del cluster.annotations[REQUEST_ANNOTATION]
    work_off(cluster)
    assert len(registry.looked) == looks


def test_requests_that_come_faster_than_looks_end_let_each_look_end() -> None:
    cluster, registry = serving()
    registry.offers, handled = "v2", set[str]()
    for number in range(40):
        cluster.annotations[REQUEST_ANNOTATION] = f"push {number}"
        cluster.act()
        cluster.step()
        handled.add(cluster.status.get("lastHandledRequestAt", ""))
    assert registry.served(cluster) == "v2"
    assert "push 39" not in handled, "it came while another one was answered"
    work_off(cluster)
    assert cluster.status["lastHandledRequestAt"] == "push 39"


def test_a_look_that_ended_as_its_object_was_refused_takes_no_place() -> None:
    cluster, _ = serving("s3")
    cluster.now = max(cluster.now, cluster.due or cluster.now)
    cluster.until_active("look")
    while cluster.active("look"):
        cluster.step()
    cluster.edit(source=cluster.spec["source"] | {"serviceAccountName": "reader"})
    work_off(cluster)
    assert cluster.condition("UpToDate")["reason"] == "NotAllowed"
    assert not [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][STAGE_LABEL] == "look"]


@pytest.mark.parametrize(
    ("reason", "looks"), [(Reason.SOURCE_ACCESS_DENIED, range(3, 6)), (Reason.SOURCE_UNREACHABLE, range(9, 14))]
)
def test_the_first_look_is_repeated_as_a_download_is(reason: Reason, looks: range) -> None:
    """Twice as late each time, but not more often than a server lets an account fail, and not later than 5 minutes."""
    cluster, registry = following("oci", interval="168h")
    registry.away_with(reason)
    until(cluster, cluster.now + timedelta(minutes=30))
    assert len(registry.looked) in looks


def test_only_so_many_objects_of_a_namespace_look_at_the_same_time() -> None:
    cluster, registry = following()
    cluster.looks_beside = MOST_LOOKS
    until(cluster, cluster.now + HOUR)
    assert registry.looked == set()
    cluster.looks_beside = MOST_LOOKS - 1
    until(cluster, cluster.now + timedelta(minutes=5))
    assert registry.served(cluster) == "v1"


def test_the_loss_of_all_records_takes_nothing_newer() -> None:
    cluster, registry = serving(onChange="Notify")
    registry.offers = "v2"
    cluster.delete("ConfigMap", "digits-results")
    until(cluster, cluster.now + HOUR)
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("False", "NewerVersion"))


@pytest.mark.parametrize(
    "odd", [{"version": ""}, {"label": "x" * 300}, {"label": "\x1b[2J"}, {"foundAt": "soon"}], ids=str
)
def test_a_version_in_the_status_that_no_look_told_stops_no_pass(odd: dict[str, str]) -> None:
    """It may come from a record of the history, which whoever may edit the ConfigMap may have written."""
    cluster, registry = serving()
    cluster.delete("ConfigMap", "digits-results")
    cluster.status["source"]["serving"] |= odd
    work_off(cluster)
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("True", "Ready"))


@pytest.mark.parametrize(("on_change", "reason"), [("Stage", "AwaitingApproval"), ("Notify", "NewerVersion")])
def test_an_object_that_is_restored_takes_nothing_newer(on_change: str, reason: str) -> None:
    saved, registry = serving(onChange=on_change)
    cluster = restored(saved)
    cluster.scripts, registry.offers = registry, "v2"
    until(cluster, cluster.now + HOUR)
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("False", reason))


def test_a_source_that_is_not_allowed_is_not_looked_at() -> None:
    cluster, registry = following("s3", serviceAccountName="reader")
    until(cluster, cluster.now + HOUR)
    assert cluster.condition("Ready")["reason"] == "NotAllowed"
    assert registry.looked == set()


def test_files_that_change_while_they_are_downloaded_are_never_published() -> None:
    cluster, registry = serving("s3")
    registry.offers = "v2"
    until(cluster, cluster.now + HOUR)
    # The second look finds v2 too, and then somebody goes on to write.
    cluster.scripts = _changing(registry)
    until(cluster, cluster.now + HOUR)
    assert (registry.served(cluster), newest(cluster)) == ("v1", ("False", "SourceChanged"))
    cluster.scripts = registry
    until(cluster, cluster.now + 3 * HOUR)
    assert registry.served(cluster) == "v3"


def _changing(registry: Registry) -> Any:
    def script(stage: str, candidate: str, request: Any) -> Script:
        if stage == "source":
            registry.offers = "v3"
        return registry(stage, candidate, request)

    return script


@pytest.mark.parametrize(("scheme", "most"), [("hf", 1), ("s3", 1), ("s3", 2)])
def test_an_operator_that_ends_between_any_two_writes_follows_all_the_same(scheme: str, most: int) -> None:
    cluster, registry = serving(scheme)
    registry.models["v3"] = WORSE
    looks = 1
    for version, served in (("v2", "v2"), ("v3", "v2"), ("v4", "v4")):
        registry.offers = version
        for _ in range(2):
            _with_crashes(cluster, most)
            looks += 1
            assert len(registry.looked) == looks
        assert registry.served(cluster) == served
    assert all(cluster.started(stage) == count for stage, count in {"convert": 3, "reference": 4}.items())


def _with_crashes(cluster: Cluster, most: int) -> None:
    """A look and what follows, by operators of which each ends after so many writes, and another one begins anew."""
    cluster.now = max(cluster.now, cluster.due or cluster.now)
    quiet = 0
    while quiet < 3:
        writes, made = 0, most
        while made:
            made, result = one_life(cluster, most)
            writes += made
        cluster.due = None if result.again_after is None else cluster.now + timedelta(seconds=result.again_after)
        changes = cluster.step()
        is_waiting = cluster.due is None or cluster.due > cluster.now + timedelta(minutes=2)
        quiet = quiet + 1 if writes + changes == 0 and is_waiting else 0
    assert not [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][STAGE_LABEL] == "look"]
    assert FOLLOWING in cluster.objects["ConfigMap", "digits-results"]["data"]


def one_life(cluster: Cluster, most: int) -> tuple[int, Result]:
    """One pass of an operator that ends after so many writes; how many it made."""
    made = 0

    def write(verb: str, body: Any) -> None:
        nonlocal made
        if made == most:
            raise UnavailableError("the operator has ended")
        made += 1

    api = ApiServer(cluster, write)
    result = Reconciler(api, api, SETTINGS, Metrics(), lambda: cluster.now).reconcile(KEY)
    return made, result


def test_a_spec_of_before_has_no_such_record(settled: Cluster) -> None:
    assert settled.spec["source"] == a_spec()["source"]
    assert FOLLOWING not in settled.objects["ConfigMap", "digits-results"]["data"]
    assert "lastHandledRequestAt" not in settled.status
