"""KEDA's ScaledObject: when there is one, what it asks, and what becomes of the replicas."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import PROMETHEUS, SETTINGS, STEP, Cluster
from tests.simulation.edits import a_wider_batch, another_source
from tests.states.deployment import a_deployment
from triton_operator.names import KEY_LABEL
from triton_operator.resources.autoscaling import PAUSED_ANNOTATION, WINDOW_SECONDS

AUTOSCALING = {"minReplicas": 2, "maxReplicas": 6, "headroomPercent": 25}
WINDOW = int(WINDOW_SECONDS / STEP.total_seconds()) + 1
"""Steps, which take longer than the window."""
HANGS = when("measure", Script(hangs=True))


def asking(**fields: Any) -> Cluster:
    """An object that asks for scaling, before its first pass."""
    return (
        a_deployment()
        .one_candidate()
        .asking(serving={"autoscaling": AUTOSCALING})
        .asking(**fields)
        .where(has_keda=True)
        .cluster()
    )


def settled(**fields: Any) -> Cluster:
    cluster = asking(**fields)
    cluster.settle()
    return cluster


def scaler(cluster: Cluster) -> dict[str, Any] | None:
    return cluster.objects.get(("ScaledObject", "digits"))


def revision_asked(cluster: Cluster) -> set[str]:
    """The revisions that the queries name."""
    found = scaler(cluster)
    assert found is not None
    queries = [each["metadata"]["query"] for each in found["spec"]["triggers"]]
    return {query.partition('revision="')[2].partition('"')[0] for query in queries}


def is_paused(cluster: Cluster) -> bool:
    found = scaler(cluster)
    return found is not None and PAUSED_ANNOTATION in found["metadata"].get("annotations", {})


def reason(cluster: Cluster) -> str:
    found: str = cluster.condition("Autoscaling")["reason"]
    return found


@pytest.mark.parametrize(("asked", "wanted"), [(6, 6), (1, 1), (0, 2), (-1, 2), (None, 2)])
def test_an_autoscaler_is_followed_while_the_spec_is_refused(asked: int | None, wanted: int) -> None:
    """What keeps serving follows the load, and is stopped by no spec that asks for other things too."""
    cluster = settled()
    cluster.edit(serving={**cluster.spec["serving"], "replicas": 2})
    cluster.settle()
    cluster.edit(conversion={"parallelism": 99})
    cluster.run(5)
    others = {name: value for name, value in cluster.spec["serving"].items() if name != "replicas"}
    cluster.edit(serving=others if asked is None else {**others, "replicas": asked})
    cluster.run(5)
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [wanted]
    assert cluster.condition("Ready")["reason"] == "InvalidSpec"


def test_the_load_is_compared_with_the_saturation_of_the_active_revision() -> None:
    cluster = settled()
    found, saturation = scaler(cluster), cluster.status["performance"]["saturation"]
    assert (reason(cluster), saturation["ended"], saturation["concurrency"]) == ("Scaling", "Plateau", 8)
    assert found is not None
    assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-0"
    spec = found["spec"]
    assert spec["scaleTargetRef"]["kind"] == "TritonDeployment"
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 6)
    assert revision_asked(cluster) == {cluster.status["serving"]["revision"]}
    in_flight, samples = spec["triggers"]
    assert in_flight["metadata"]["query"].endswith(" / 1e6 / 8")
    assert samples["metadata"]["query"].endswith(f" / {saturation['throughput']}")
    for trigger in spec["triggers"]:
        asked = trigger["metadata"]
        assert 'namespace="vision",object="digits",model="digits",' in asked["query"]
        assert (asked["serverAddress"], asked["threshold"], asked["ignoreNullValues"]) == (PROMETHEUS, "75", "false")
    assert spec["fallback"]["behavior"] == "currentReplicas"


def test_an_object_that_asks_for_nothing_has_neither_a_scaler_nor_the_condition() -> None:
    cluster = settled(serving={"replicas": 2})
    assert scaler(cluster) is None
    assert all(each["type"] != "Autoscaling" for each in cluster.status["conditions"])


def test_before_a_first_revision_is_active_nothing_is_scaled() -> None:
    cluster = asking()
    cluster.act()
    assert (scaler(cluster), cluster.condition("Autoscaling")["status"]) == (None, "Unknown")


@pytest.mark.parametrize(
    ("keda", "address", "missing"),
    [(False, PROMETHEUS, "AddOnMissing"), (True, "", "AddOnMissing"), (False, "", "AddOnMissing")],
)
def test_what_the_cluster_lacks_is_said_and_stops_nothing(keda: bool, address: str, missing: str) -> None:
    cluster = asking()
    cluster.has_keda, cluster.settings = keda, replace(SETTINGS, prometheus_address=address)
    cluster.settle()
    assert (reason(cluster), scaler(cluster)) == (missing, None)
    assert cluster.condition("Ready")["status"] == "True"
    assert [each.type for each in cluster.events if each.reason == missing] == ["Warning"]


@pytest.mark.parametrize(("keda", "address"), [(False, PROMETHEUS), (True, "")])
def test_what_the_cluster_lacks_is_said_before_anything_is_measured_again(keda: bool, address: str) -> None:
    cluster = a_deployment().one_candidate().serving().cluster()
    cluster.has_keda, cluster.settings = keda, replace(SETTINGS, prometheus_address=address)
    story = list(cluster.story)
    cluster.edit(serving={"autoscaling": AUTOSCALING})
    cluster.settle()
    assert reason(cluster) == "AddOnMissing"
    assert cluster.story == story
    cluster.has_keda, cluster.settings = True, SETTINGS
    cluster.act()
    cluster.settle()
    assert [each for each in cluster.story[len(story) :] if each.startswith("profile")] == ["profile onnx-fp32"]
    assert reason(cluster) == "Scaling"


def test_where_the_scaler_goes_away_nothing_is_measured_again() -> None:
    cluster = settled()
    story, cluster.has_keda = list(cluster.story), False
    cluster.act()
    cluster.settle()
    assert (reason(cluster), cluster.story) == ("AddOnMissing", story)


def test_the_load_of_the_measurement_scales_nothing() -> None:
    cluster = asking()
    cluster.until(lambda cluster: scaler(cluster) is not None)
    cluster.act()
    assert (is_paused(cluster), reason(cluster)) == (True, "ScalingPaused")
    assert cluster.condition("Ready")["status"] == "True"
    assert 0 < (cluster.intent().requeue_after or 0) <= WINDOW_SECONDS
    cluster.run(WINDOW)
    assert (is_paused(cluster), reason(cluster)) == (False, "Scaling")


def test_what_the_scaler_wrote_stays_and_measures_nothing() -> None:
    cluster = settled()
    story, before = list(cluster.story), scaler(cluster)
    cluster.edit(serving={"replicas": 5, "autoscaling": AUTOSCALING})
    cluster.settle()
    assert (cluster.story, scaler(cluster)) == (story, before)
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [5]


def test_other_bounds_measure_nothing() -> None:
    cluster = settled()
    story = list(cluster.story)
    cluster.edit(serving={"autoscaling": AUTOSCALING | {"maxReplicas": 9}})
    cluster.settle()
    found = scaler(cluster)
    assert cluster.story == story
    assert found is not None
    assert found["spec"]["maxReplicaCount"] == 9


def test_another_headroom_is_confirmed_by_a_profile_and_restarts_no_server() -> None:
    cluster = settled()
    story = list(cluster.story)
    cluster.edit(serving={"autoscaling": AUTOSCALING | {"headroomPercent": 50}})
    cluster.settle()
    assert [each for each in cluster.story[len(story) :] if not each.startswith(("profile", "metrics"))] == []
    assert reason(cluster) == "Scaling"


def test_the_queries_follow_the_active_revision_and_not_the_target() -> None:
    cluster = settled()
    old = cluster.status["serving"]["revision"]
    cluster.scripts = HANGS
    cluster.edit(a_wider_batch())
    cluster.until_active("measure")
    assert (revision_asked(cluster), is_paused(cluster), reason(cluster)) == ({old}, False, "Scaling")
    cluster.scripts = settled().scripts
    cluster.settle()
    new = cluster.status["serving"]["revision"]
    assert new != old
    assert revision_asked(cluster) == {new}


def test_while_the_active_revision_is_measured_again_its_replicas_stay() -> None:
    cluster = settled()
    cluster.scripts = HANGS
    cluster.edit(performance={"online": {"concurrency": {"start": 2}}})
    cluster.until_active("measure")
    cluster.act()
    assert (is_paused(cluster), reason(cluster)) == (True, "ScalingPaused")


def test_without_servers_the_scaler_does_not_start_them() -> None:
    cluster = settled()
    cluster.edit(serving={"replicas": 0, "autoscaling": AUTOSCALING})
    cluster.settle()
    assert (is_paused(cluster), reason(cluster)) == (True, "ScalingPaused")
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [0]


def test_a_saturation_that_became_unknown_leaves_the_replicas() -> None:
    cluster = settled()
    cluster.edit(
        serving={"replicas": 4, "autoscaling": AUTOSCALING},
        selection={"constraints": {"p99Latency": "1us"}, "fallback": "Closest"},
    )
    cluster.settle()
    assert (reason(cluster), scaler(cluster)) == ("SaturationUnknown", None)
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [4]


def test_scaling_that_is_no_longer_asked_for_leaves_the_replicas() -> None:
    cluster = settled()
    cluster.edit(serving={"replicas": 3})
    cluster.settle()
    assert scaler(cluster) is None
    assert [each["spec"]["replicas"] for each in cluster.of_kind("Deployment")] == [3]
    assert all(each["type"] != "Autoscaling" for each in cluster.status["conditions"])


@pytest.mark.parametrize("kind", ["the first", "the next"])
def test_a_revision_that_served_before_a_status_told_so_is_scaled_after_an_edit(kind: str) -> None:
    """The operator is stopped between the move of the Service and the status that tells of it."""
    cluster = settled() if kind == "the next" else asking()
    before = cluster.serving()
    if kind == "the next":
        cluster.edit(a_wider_batch())
    for _ in range(300):
        told = deepcopy(cluster.status)
        cluster.act()
        if cluster.serving() != before:
            break
        cluster.step()
    cluster.status = told
    cluster.edit(another_source())
    cluster.scripts = when("source", Script(hangs=True))
    cluster.run(WINDOW + 10)
    view = cluster.objects["Deployment", cluster.serving() or ""]
    assert cluster.status["serving"]["revision"] == view["metadata"]["labels"][KEY_LABEL]
    assert float(cluster.status["serving"]["throughput"]) > 0
    assert cluster.status["accuracy"]
    assert revision_asked(cluster) == {cluster.status["serving"]["revision"]}
    cluster.scripts = when("source", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert '"status"' not in cluster.objects["ConfigMap", "digits-results"]["data"]["soak.active"]
