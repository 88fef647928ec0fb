"""What somebody changes by hand is put back, and what serves is not deleted for it."""

from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model
from tests.simulation.edits import another_source
from tests.simulation.test_rollback import active
from tests.simulation.test_rollout import answering
from tests.simulation.test_soak import promoted, soaked, with_clients
from tests.simulation.walk.walking import Walk, why
from tests.states.deployment import a_deployment
from triton_operator import names

MANUAL = {"approval": "Manual"}


@pytest.fixture
def serving() -> Cluster:
    return a_deployment().settled().cluster()


def point(cluster: Cluster, name: str) -> None:
    """Somebody edits the Service's selector."""
    cluster.objects["Service", "digits"]["spec"]["selector"][names.SERVER_LABEL] = name


def test_a_selector_that_points_to_nothing_is_put_back(serving: Cluster) -> None:
    """While another revision is the target, the active one is known by its record alone."""
    active = serving.serving()
    serving.scripts = when("convert", Script(hangs=True))
    serving.edit(another_source())
    serving.run(5)
    point(serving, "digits-nobody")
    serving.run(5)
    assert (serving.serving(), answering(serving)) == (active, 1)


def test_what_is_active_stays_while_its_service_points_to_nothing_and_may_not_be_written() -> None:
    """Replayed from the random walk: the record tells of the next one already, and the status of this one."""
    refused = [("an hour passes", 3600), ("damage", 1), ("refusals", [("apply", "Service")])]
    assert not why(1, [*refused, ("a selector by hand", 1), ("time passes", 90)])


def test_what_is_recorded_comes_back_where_it_was_deleted_and_its_service_points_to_nothing(serving: Cluster) -> None:
    """Replayed from the random walk: the Service told of a Deployment that never was, and was written so."""
    active = serving.serving()
    del serving.objects["Deployment", active or ""]
    point(serving, "digits-nobody")
    serving.act()
    assert serving.serving() == active
    serving.settle()
    assert answering(serving) == 1


def undone(cluster: Cluster) -> tuple[str, str]:
    """What is active again after a soak failed, and what was undone."""
    good = cluster.serving() or ""
    cluster.edit(another_source())
    for _ in range(300):
        cluster.run(1)
        if cluster.serving() != good:
            break
    bad = cluster.serving() or ""
    cluster.restart(cluster.pods_of(bad)[0]["metadata"]["name"])
    cluster.run(5)
    assert cluster.serving() == good
    return good, bad


def test_a_selector_that_points_to_an_undone_revision_is_put_back() -> None:
    cluster = a_deployment().asking(serving={"soak": {"duration": "10m"}}).settled().cluster()
    good, bad = undone(cluster)
    point(cluster, bad)
    cluster.run(5)
    assert (cluster.serving(), answering(cluster)) == (good, 1)


@pytest.mark.parametrize("moment", ["while another one is converted", "while another one waits for approval"])
def test_a_deployment_that_somebody_deletes_is_made_again(serving: Cluster, moment: str) -> None:
    active = serving.serving() or ""
    template = serving.objects["Deployment", active]["spec"]["template"]
    if moment == "while another one is converted":
        serving.scripts = when("convert", Script(hangs=True))
        serving.edit(another_source())
        serving.run(5)
    else:
        serving.edit(another_source(), selection=MANUAL)
        serving.settle()
    serving.delete("Deployment", active)
    serving.run(10)
    assert serving.objects["Deployment", active]["spec"]["template"] == template
    assert (serving.serving(), answering(serving)) == (active, 1)


def test_a_deployment_that_was_orphaned_is_owned_again(serving: Cluster) -> None:
    """Somebody deleted the object, let its children live, and applied it again: no owner and no record is left."""
    body = serving.objects["Deployment", serving.serving() or ""]
    (owner,) = body["metadata"].pop("ownerReferences")
    del serving.objects["ConfigMap", "digits-results"]["data"]["soak.active"]
    serving.run(3)
    assert serving.objects["Deployment", serving.serving() or ""]["metadata"]["ownerReferences"] == [owner]
    assert "soak.active" in serving.objects["ConfigMap", "digits-results"]["data"]


def test_a_service_and_a_deployment_that_somebody_deletes_are_made_again(serving: Cluster) -> None:
    active = serving.serving() or ""
    serving.scripts = when("convert", Script(hangs=True))
    serving.edit(another_source())
    serving.run(5)
    serving.delete("Deployment", active)
    serving.delete("Service", "digits")
    serving.run(10)
    assert (serving.serving(), answering(serving)) == (active, 1)


REFUSED: dict[str, dict[str, Any]] = {
    "InvalidSpec": {"conversion": {"parallelism": 99}},
    "a canary without a soak": {"serving": {"replicas": 2, "route": {"hosts": 1}, "progressDeadlineSeconds": "soon"}},
    "no spec at all": {"models": None, "serving": [], "repository": "digits"},
}


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("kinds", [("Deployment",), ("Service",), ("Deployment", "Service", "NetworkPolicy")])
def test_what_serves_is_made_again_while_the_spec_is_refused(
    serving: Cluster, refused: str, kinds: tuple[str, ...]
) -> None:
    active = serving.serving() or ""
    template = serving.objects["Deployment", active]["spec"]["template"]
    serving.edit(**REFUSED[refused])
    serving.run(3)
    before = {key for key in serving.objects if key[0] != "Pod"}
    deleted = {"Deployment": active, "Service": "digits", "NetworkPolicy": names.servers_policy("digits")}
    for kind in kinds:
        serving.delete(kind, deleted[kind])
    serving.run(10)
    assert serving.objects["Deployment", active]["spec"]["template"] == template
    assert serving.serving() == active
    assert answering(serving) == serving.objects["Deployment", active]["spec"]["replicas"]
    assert {key for key in serving.objects if key[0] != "Pod"} == before
    assert serving.condition("Stalled")["reason"] == "InvalidSpec"
    assert serving.act() == 0


def test_a_service_that_leads_nowhere_is_put_back_while_the_spec_is_refused(serving: Cluster) -> None:
    active = serving.serving()
    serving.edit(**REFUSED["InvalidSpec"])
    serving.run(3)
    point(serving, "digits-nobody")
    serving.run(3)
    assert (serving.serving(), answering(serving)) == (active, 1)


def test_a_record_that_somebody_changed_is_not_served_while_the_spec_is_refused(serving: Cluster) -> None:
    active = serving.serving() or ""
    serving.edit(**REFUSED["InvalidSpec"])
    data = serving.objects["ConfigMap", "digits-results"]["data"]
    data["soak.active"] = data["soak.active"].replace("--model-repository=", "--model-repository=/tmp")
    serving.delete("Deployment", active)
    serving.run(5)
    assert ("Deployment", active) not in serving.objects
    assert serving.condition("Stalled")["reason"] == "InvalidSpec"


def test_what_an_older_operator_made_active_is_active() -> None:
    """It writes no record, and moves the Service and the status."""
    cluster = a_deployment().settled().cluster()
    old = cluster.serving()
    before = dict(cluster.objects["ConfigMap", "digits-results"]["data"])
    cluster.edit(another_source())
    cluster.settle()
    new = cluster.serving()
    assert new != old
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    data["soak.active"] = before["soak.active"]
    cluster.settle()
    assert (cluster.serving(), answering(cluster)) == (new, 1)


def test_a_renamed_model_is_scaled_by_the_name_that_still_serves() -> None:
    scaling = {"autoscaling": {"minReplicas": 1, "maxReplicas": 3}}
    cluster = a_deployment().asking(serving=scaling).where(has_keda=True).settled().cluster()
    cluster.scripts = when("convert", Script(hangs=True))
    cluster.edit(models=[a_model(name="renamed")])
    cluster.run(5)
    (scaled,) = cluster.of_kind("ScaledObject")
    assert all('model="digits"' in each["metadata"]["query"] for each in scaled["spec"]["triggers"])


def test_what_is_active_stays_while_its_service_may_not_move_to_another_server_of_the_same_revision() -> None:
    """Replayed from the random walk: the status tells of a revision that both servers have."""
    begun = [("time passes", 600), ("refusals", [("apply", "Service"), ("status", "TritonDeployment")])]
    assert not why(None, [*begun, ("an edit of serving", "a verbose log"), ("time passes", 90)])


def test_what_the_service_was_led_to_by_hand_stays_until_the_service_has_moved_back() -> None:
    """Replayed from the random walk: a spec that is refused in an exchange on the last GPU."""
    begun = [("time passes", 90), ("an edit of serving", "another image"), ("time passes", 60)]
    by_hand = [("servers start", "none"), ("deleted by hand", "Deployment")]
    assert not why(1, [*begun, *by_hand, ("a refused spec in an exchange", 1), ("a selector by hand", 0)])


def test_a_revision_that_a_hand_led_back_to_is_told_by_its_own_figures() -> None:
    """Replayed from the random walk: the move away from it is then recorded once more."""
    repaired = [("time passes", 300), ("damage", 1), ("time passes", 4), ("a reboot", None)]
    soaked = [("an edit of serving", "a short soak"), ("a reboot", None), ("time passes", 10)]
    assert not why(None, [*repaired, *soaked, ("a selector by hand", 0)])


def test_what_failed_its_soak_stays_while_the_service_may_not_move_back() -> None:
    walk = Walk(None)
    world, cluster = walk.world, walk.world.cluster
    world.edit(serving={"soak": {"duration": "10m"}})
    walk.run(600)
    good = cluster.serving()
    world.edit(another_source())
    while cluster.serving() == good:
        walk.run(4)
    bad = cluster.serving() or ""
    world.api.refused = {("apply", "Service")}
    cluster.restart(cluster.pods_of(bad)[0]["metadata"]["name"])
    walk.run(90)
    assert ("Deployment", bad) in cluster.objects
    world.api.refused = set()
    walk.run(90)
    assert cluster.serving() == good


def test_a_service_that_somebody_moved_back_during_a_soak_stays_where_the_spec_holds_that_revision() -> None:
    """The emergency way of the runbooks while no operator works: hold the revision, then move the Service by hand."""
    cluster = with_clients()
    key = active(cluster)
    good, bad = promoted(cluster)
    cluster.run(3)
    assert soaked(cluster)[1] == "Soaking"
    cluster.spec |= {"rollout": {"revision": key}}
    cluster.generation += 1
    point(cluster, good)
    for _ in cluster.passes(30):
        assert cluster.serving() == good
        assert answering(cluster) >= 1
    assert bad not in {name for kind, name in cluster.objects if kind == "Deployment"}
    assert active(cluster) == key
    assert cluster.condition("Ready")["status"] == "True"
