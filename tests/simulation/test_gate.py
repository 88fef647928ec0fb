"""With `serving.mode: None` everything is checked, measured, selected and published, and nothing serves."""

from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_wider_batch, another_source, merged
from tests.simulation.test_publish import PUBLISH, REFUSED, state_of
from tests.states.deployment import State, a_deployment
from triton_operator.api.triton_deployment import InvalidSpecError, parse

SERVED = ("Deployment", "Service", "HTTPRoute", "ScaledObject", "PodDisruptionBudget")
DONE = {"Ready": "True", "UpToDate": "True", "Reconciling": "False", "Stalled": "False"}


def gated(**fields: Any) -> State:
    return a_deployment().one_candidate().asking(serving={"mode": "None"}, **fields)


def summary(cluster: Cluster) -> dict[str, str]:
    return {kind: cluster.condition(kind)["status"] for kind in DONE}


def served(cluster: Cluster) -> list[str]:
    return [kind for kind in SERVED if cluster.of_kind(kind)]


def test_what_is_selected_is_ready_without_a_server() -> None:
    cluster = gated().settled().cluster()
    assert (summary(cluster), served(cluster)) == (DONE, [])
    assert cluster.started("measure") == 0
    serving = cluster.status["serving"]
    assert serving["candidate"] == "onnx-fp32"
    assert serving["throughput"]
    assert "replicas" not in serving
    assert "endpoint" not in cluster.status
    assert "passed, verified and measured" in cluster.condition("Ready")["message"]
    cluster.act()
    assert cluster.act() == 0


def test_it_is_ready_once_it_is_published() -> None:
    cluster = gated(publish=PUBLISH).until_active("publish").cluster()
    assert summary(cluster) == {"Ready": "False", "UpToDate": "False", "Reconciling": "True", "Stalled": "False"}
    assert state_of(cluster) == ("Unknown", "Running")
    cluster.settle()
    assert (summary(cluster), served(cluster)) == (DONE, [])
    assert cluster.status["published"]["revision"] == cluster.status["serving"]["revision"]
    assert cluster.started("publish") == 1


def test_what_cannot_be_published_is_stalled() -> None:
    cluster = gated(publish=PUBLISH).faring(when("publish", REFUSED)).settled().cluster()
    assert summary(cluster) == {"Ready": "False", "UpToDate": "False", "Reconciling": "False", "Stalled": "True"}
    assert state_of(cluster, "Ready") == ("False", "RegistryNotFound")
    cluster.scripts = when("publish", Script())
    cluster.retry()
    cluster.settle()
    assert summary(cluster) == DONE


def test_what_passed_stays_while_something_newer_is_worked_on() -> None:
    cluster = gated(publish=PUBLISH).settled().cluster()
    first = cluster.status["published"]
    cluster.scripts = when("convert", Script(content="second"))
    cluster.edit(another_source())
    cluster.until(lambda each: each.active("convert"))
    assert cluster.status["published"] == first
    cluster.settle()
    assert summary(cluster) == DONE
    assert cluster.status["published"]["revision"] != first["revision"]
    history = cluster.objects["ConfigMap", "digits-results"]["data"]["history"]
    assert first["revision"] in history


def test_another_place_is_not_ready_until_it_has_the_image() -> None:
    cluster = gated(publish=PUBLISH).settled().cluster()
    cluster.edit(publish=PUBLISH | {"uri": "oci://registry.example/acme/other"})
    cluster.until(lambda each: each.active("publish"))
    assert summary(cluster)["Ready"] == "False"
    cluster.settle()
    assert summary(cluster) == DONE


def test_the_server_goes_and_comes_back() -> None:
    cluster = a_deployment().one_candidate().soaked().routed().autoscaled().settled().cluster()
    assert {*served(cluster)} >= {"Deployment", "Service", "HTTPRoute"}
    jobs = len(cluster.story)
    cluster.edit(merged("serving", mode="None"))
    cluster.settle()
    assert (summary(cluster), served(cluster)) == (DONE, [])
    assert cluster.story[jobs:] == []
    cluster.edit(merged("serving", mode="Serve"))
    cluster.settle()
    assert summary(cluster) == DONE
    assert {*served(cluster)} >= {"Deployment", "Service", "HTTPRoute"}
    assert cluster.serving() is not None
    assert cluster.status["serving"]["replicas"] == 1


def test_old_files_leave_the_claim() -> None:
    cluster = gated(revisionHistoryLimit=0, metrics=None, accuracy={}).settled().cluster()
    assert cluster.started("clean") == 0
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert (summary(cluster), cluster.started("clean")) == (DONE, 1)


def test_what_is_worse_than_what_passed_before_does_not_pass() -> None:
    cluster = gated(publish=PUBLISH).settled().cluster()
    first = cluster.status["published"]
    cluster.scripts = when("comparison", Script(before=0.99))
    cluster.edit(another_source())
    cluster.settle()
    assert state_of(cluster, "Verified") == ("False", "WorseThanBefore")
    assert cluster.status["published"] == first


def test_each_nights_version_is_published() -> None:
    source = {"uri": "oci://registry.example/acme/trained:nightly", "interval": "1h"}
    cluster = gated(publish=PUBLISH, source=source).until_has("Ready").cluster()
    assert summary(cluster) == DONE
    revisions = [cluster.status["published"]["revision"]]
    for night in ("second", "third"):
        cluster.scripts = when("look", Script(content=night))
        cluster.now += timedelta(hours=1.2)
        cluster.run(1)
        # What passed last stays.
        assert {summary(cluster)["Ready"] for _ in cluster.steps(60)} == {"True"}
        revisions.append(cluster.status["published"]["revision"])
    assert len(set(revisions)) == 3
    assert cluster.started("publish") == 3
    assert cluster.status["source"]["serving"]["version"] == "third"


def test_a_held_revision_needs_a_server() -> None:
    cluster = gated(rollout={"revision": "0123456789abcdef"}).cluster()
    with pytest.raises(InvalidSpecError, match=r"rollout\.revision is served"):
        parse(cluster.body())
