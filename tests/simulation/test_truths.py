"""A status tells the truth of the objects around it; the API server of the simulation compares each that is written."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.simulation import truths
from tests.simulation.api_server import BrokenError
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_narrower_batch, a_wider_batch, the_usual_batch
from tests.simulation.truths import AT_REST, PLANNED, STATUS, Told, Truth
from tests.states.moments import MOMENTS, SERVING
from triton_operator.rollout import available

NO_SERVICE = {("create", "Service")}


def say(cluster: Cluster, kind: str, status: str, reason: str = "Progressing") -> None:
    """Have a condition say something else, or be there."""
    others = [each for each in cluster.status["conditions"] if each["type"] != kind]
    told = {"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": 1}
    cluster.status["conditions"] = [*others, told]


def says(kind: str, status: str, reason: str = "Progressing") -> Callable[[Cluster], None]:
    return lambda cluster: say(cluster, kind, status, reason)


def tells(**fields: Any) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.status.update(fields)


def serves(**fields: Any) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.status["serving"].update(fields)


def has_no(kind: str) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.delete(kind, "digits")


def _forget_stalled(cluster: Cluster) -> None:
    cluster.status["conditions"] = [each for each in cluster.status["conditions"] if each["type"] != "Stalled"]


def _forget_endpoint(cluster: Cluster) -> None:
    del cluster.status["endpoint"]


def _no_pod_is_ready(cluster: Cluster) -> None:
    cluster.objects["Deployment", cluster.serving() or ""]["status"]["readyReplicas"] = 0


def _queued_in_its_work(cluster: Cluster) -> None:
    say(cluster, "Converted", "Unknown", "Queued")
    _work(cluster)


def _stalled_in_its_work(cluster: Cluster) -> None:
    say(cluster, "Stalled", "True")
    _work(cluster)


def _work(cluster: Cluster) -> None:
    """A Job of it runs."""
    job = cluster.of_kind("Job")[0]
    del job["status"]["shown"]
    for pod in cluster.of_kind("Pod"):
        if pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]:
            pod["status"]["startTime"] = job["metadata"]["creationTimestamp"]


def _nothing_is_to_serve(cluster: Cluster) -> None:
    cluster.spec["serving"] = {"mode": "None"}


def _two_servers_after_a_soak(cluster: Cluster) -> None:
    cluster.objects["Deployment", "digits-0"] = cluster.of_kind("Deployment")[0]
    say(cluster, "Soaked", "True", "SoakPassed")


LIES: Mapping[Truth, Callable[[Cluster], None]] = {
    truths.available_is_under_ready: says("Available", "False"),
    truths.ready_is_under_up_to_date: says("Ready", "False"),
    truths.stalled_is_nothing_else: says("Stalled", "True"),
    truths.nothing_is_newer_than_up_to_date: tells(target={"revision": "0" * 16, "candidate": "onnx-fp32"}),
    truths.summaries_are_there: _forget_stalled,
    truths.notices_hold: says("NewImagesAvailable", "False"),
    truths.generation_is_seen: tells(observedGeneration=2),
    truths.available_answers: _no_pod_is_ready,
    truths.endpoint_is_there: has_no("Service"),
    truths.extras_are_asked_for: says("Soaked", "True"),
    truths.published_names_what_serves: says("Published", "True"),
    truths.serving_is_one_revision: serves(revision="0" * 16),
    truths.what_answers_is_available: says("Available", "False"),
    truths.service_is_told: _forget_endpoint,
    truths.revision_is_what_serves: serves(revision="0" * 16),
    truths.selector_selects_what_serves: serves(selector="triton-operator.dev/deployment=digits"),
    truths.nothing_serves_unasked: _nothing_is_to_serve,
    truths.replicas_are_counted: serves(replicas=7),
    truths.nothing_runs_while_stalled: _stalled_in_its_work,
    truths.running_runs: says("Verified", "Unknown", "Running"),
    truths.queued_is_suspended: _queued_in_its_work,
    truths.soaking_keeps_the_previous: says("Soaked", "Unknown", "Soaking"),
    truths.passed_soak_deletes_the_previous: _two_servers_after_a_soak,
    truths.scaling_has_a_scaler: says("Autoscaling", "True", "Scaling"),
    truths.accepted_route_is_there: says("Routed", "True", "RouteAccepted"),
}
"""What breaks each promise, of a status that keeps it."""


@pytest.mark.parametrize("truth", LIES, ids=lambda truth: truth.__name__)
def test_a_lie_is_found(truth: Truth) -> None:
    cluster = SERVING.cluster()
    assert not list(truths.broken(Told(cluster.body(), cluster.objects), rests=True))
    LIES[truth](cluster)
    assert not truth(Told(cluster.body(), cluster.objects))


def test_every_promise_is_broken_here() -> None:
    assert set(LIES) == {*STATUS, *PLANNED, *AT_REST}


@pytest.mark.parametrize("name", MOMENTS)
def test_each_moment_goes_on_in_truth(name: str) -> None:
    cluster = MOMENTS[name].cluster()
    cluster.run(3)
    assert cluster.status["observedGeneration"] == cluster.generation


# What the walk found ------------------------------------------------------------------------------------------------


@pytest.fixture
def alone() -> Cluster:
    """A cluster whose object serves, and whose Service somebody deleted; another one is refused."""
    cluster = SERVING.cluster()
    cluster.delete("Service", "digits")
    cluster.refuses = NO_SERVICE
    return cluster


def test_what_no_service_points_to_is_not_available(alone: Cluster) -> None:
    alone.act()
    for kind in ("Available", "Ready", "UpToDate"):
        assert alone.condition(kind)["status"] == "False"
    assert "is ready, and Service digits does not point to it yet" in alone.condition("Available")["message"]
    alone.refuses = set()
    alone.settle()
    assert alone.condition("Ready")["status"] == "True"


def test_a_service_that_is_put_back_is_told_of_by_the_next_pass(alone: Cluster) -> None:
    alone.refuses = set()
    alone.act()
    assert alone.has("RollingOut", "Available")
    alone.act()
    assert alone.has("Available", "Available")
    assert alone.has("Ready")


def test_statuses_that_were_refused_while_the_service_moved_leave_no_figures_of_another_revision() -> None:
    cluster = SERVING.edited(a_wider_batch()).cluster()
    old = cluster.status["serving"]
    cluster.refuses = {("status", "TritonDeployment")}
    cluster.until(lambda each: each.serving() not in old["selector"]).run(2)
    cluster.edit(the_usual_batch())
    cluster.refuses = set()
    cluster.act()
    told = cluster.status["serving"]
    assert told["selector"] != old["selector"]
    assert told.get("revision") != old["revision"]
    cluster.settle()
    assert cluster.status["serving"] == old


def test_a_revision_that_an_edit_overtakes_stays_active_when_its_service_is_deleted() -> None:
    """Its figures are told by the pass after the move, from the record of it: the edit's target is another one."""
    first = SERVING.cluster().serving()
    cluster = SERVING.edited(a_wider_batch()).cluster().until(lambda each: each.serving() != first)
    cluster.edit(a_narrower_batch())
    cluster.act()
    server = cluster.serving()
    assert cluster.status["serving"]["revision"]
    cluster.delete("Service", "digits")
    cluster.run(2)
    assert ("Deployment", server) in cluster.objects
    assert cluster.serving() == server


def test_an_operator_that_tells_of_a_service_before_it_is_there_fails_the_test(
    monkeypatch: pytest.MonkeyPatch, alone: Cluster
) -> None:
    monkeypatch.setattr(available, "_unreached_condition", lambda context, view: None)
    with pytest.raises(BrokenError, match="Available is True only while the Service points to a server whose model is"):
        alone.act()
