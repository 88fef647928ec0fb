"""An API server that fails at objects of a kind, or does not answer at all: what else goes on, and what is told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.api_server import KEY, Body
from tests.simulation.cluster import Cluster
from tests.simulation.walk.walking import Walk
from triton_operator import names
from triton_operator.kube.errors import ClusterError, ServerError, UnavailableError
from triton_operator.runtime.carrying_out import CarryingOut
from triton_operator.runtime.queue import Result
from triton_operator.runtime.writing import Writer, by_key


@pytest.fixture
def walk() -> Walk:
    """A settled object, whose Service and one of whose NetworkPolicies somebody then changes by hand."""
    walk = Walk(None)
    walk.settle()
    objects = walk.world.cluster.objects
    objects["NetworkPolicy", "digits-jobs"]["spec"]["egress"] = [{}]
    objects["Service", "digits"]["spec"]["ports"] = []
    return walk


def is_mended(walk: Walk, kind: str, name: str) -> bool:
    spec: Body = walk.world.cluster.objects[kind, name]["spec"]
    return bool(spec["ports"]) if kind == "Service" else spec["egress"] == []


def test_a_kind_that_fails_holds_up_no_other(walk: Walk) -> None:
    walk.world.api.broken = {"NetworkPolicy"}
    assert walk.world.reconcile() == Result(failed=True)
    assert is_mended(walk, "Service", "digits")
    assert not is_mended(walk, "NetworkPolicy", "digits-jobs")


def test_what_fails_for_long_is_told_once(walk: Walk) -> None:
    world = walk.world
    world.api.broken = {"NetworkPolicy"}
    for seconds, told in ((0, "Ready"), (14, "Ready"), (2, "ApplyFailed"), (30, "ApplyFailed"), (30, "ApplyFailed")):
        world.cluster.now += timedelta(seconds=seconds)
        before = world.api.count
        assert world.reconcile().failed
        assert world.cluster.condition("Reconciling")["reason"] == told
    assert world.api.count == before, "another port in the message is no news"
    reconciling = world.cluster.condition("Reconciling")
    assert reconciling["status"] == "True"
    assert "NetworkPolicy digits-jobs: failed calling webhook: dial tcp" in reconciling["message"]
    assert world.cluster.condition("Ready")["status"] == "True"
    world.api.broken = set()
    walk.settle()
    assert is_mended(walk, "NetworkPolicy", "digits-jobs")
    assert world.cluster.condition("Reconciling")["reason"] == "Ready"


def test_a_pass_stops_where_nothing_answers(walk: Walk) -> None:
    walk.world.api.fails_after = 0
    assert walk.world.reconcile() == Result(failed=True)
    assert not is_mended(walk, "Service", "digits")
    assert walk.world.api.fails_after is None, "one write was tried"


@pytest.mark.parametrize("error", [ServerError, UnavailableError])
@pytest.mark.parametrize(("asked", "pause"), [(7.0, 7.0), (600.0, 60.0)])
def test_the_pause_is_the_one_that_the_api_server_asks_for(
    walk: Walk, monkeypatch: pytest.MonkeyPatch, error: type[ClusterError], asked: float, pause: float
) -> None:
    def fail(verb: str, body: Body) -> None:
        raise error("too busy", asked)

    monkeypatch.setattr(walk.world.api, "writes", fail)
    assert walk.world.reconcile() == Result(again_after=pause, failed=True)


def test_the_service_moves_only_once_its_record_is_written(walk: Walk) -> None:
    world, api = walk.world, walk.world.api
    walk.settle()
    api.writes = lambda verb, body: None
    wanted = world.cluster.intent()

    def changed(body: Body) -> Body:
        if body["kind"] == "ConfigMap":
            return {**body, "data": {**body["data"], "move": "{}"}}
        if (body["kind"], body["metadata"]["name"]) != ("Service", "digits"):
            return body
        selector = {**body["spec"]["selector"], names.SERVER_LABEL: "digits-next"}
        return {**body, "spec": {**body["spec"], "selector": selector}}

    def served() -> str | None:
        moving = replace(wanted, objects=tuple(map(changed, wanted.objects)))
        owner = api.owner(KEY)
        assert owner is not None
        carried = CarryingOut(Writer(api, api, world.metrics), owner, by_key(api.children(KEY)), moving)
        carried.take_steps(to_the_end=False)
        return world.cluster.serving()

    before = world.cluster.serving()
    api.broken = {"ConfigMap"}
    assert served() == before
    api.broken = set()
    api.refused = {("apply", "ConfigMap")}
    assert served() == before
    api.refused = set()
    assert served() == "digits-next"


def test_no_other_is_measured_while_results_cannot_be_written() -> None:
    """The Job that goes holds its failure alone, so it stays, and its server with it."""
    walk = Walk(None)
    cluster = walk.world.cluster
    cluster.scripts = when("profile", Script(hangs=True), "onnx-fp32")
    walk.run(3600)
    before = profiled(cluster)
    walk.world.api.broken = {"ConfigMap"}
    for _ in range(12):
        walk.run(10)
    assert profiled(cluster) == before
    walk.world.api.broken = set()
    walk.settle()
    assert cluster.condition("Ready")["status"] == "True"


def profiled(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.of_kind("Job") if "-profile-" in each["metadata"]["name"]]
