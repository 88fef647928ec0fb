"""A ScaledObject or HTTPRoute that is refused, or is somebody else's: it is said, whatever else becomes of the pass."""

from collections.abc import Callable

import pytest

from tests.simulation.api_server import Body
from tests.simulation.walk.world import World
from tests.states.deployment import State, a_deployment
from triton_operator.kube.errors import NotFoundError
from triton_operator.planning.setbacks import TOLD_AFTER
from triton_operator.runtime.queue import Result

AUTOSCALED, ROUTED = a_deployment().one_candidate().autoscaled(), a_deployment().one_candidate().routed()
OPTIONAL = [(AUTOSCALED, "ScaledObject", "Autoscaling"), (ROUTED, "HTTPRoute", "Routed")]
"""What asks for an object that nothing else needs, its kind, and the condition that tells of it."""


def without(state: State, *kinds: str) -> World:
    """A settled TritonDeployment of which objects were deleted, before a pass that makes them again."""
    world = World(state.settled().cluster())
    world.service.forget()
    world.cluster.events.clear()
    for kind in kinds:
        world.cluster.delete(kind, "digits")
    return world


def said(world: World, *kinds: str) -> list[tuple[str, str]]:
    """Status and reason of these conditions."""
    found = [world.cluster.condition(each) for each in kinds]
    return [(each["status"], each["reason"]) for each in found]


def _a_policy(world: World) -> None:
    world.api.refused = {("create", "ScaledObject"), ("create", "HTTPRoute")}


def _somebody_elses(world: World) -> None:
    metadata = {"name": "digits", "namespace": "vision", "uid": "uid-mine", "resourceVersion": "1"}
    mine: Body = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "status": {}}
    world.cluster.objects["ScaledObject", "digits"] = mine


def _no_keda(world: World) -> None:
    def look(verb: str, body: Body) -> None:
        if body["kind"] == "ScaledObject":
            raise NotFoundError("the API server does not know the kind")

    world.api.writes = look


@pytest.mark.parametrize(
    ("happen", "words"),
    [
        (_a_policy, "a policy forbids to create it"),
        (_somebody_elses, "is not this TritonDeployment's"),
        (_no_keda, "does not know the kind"),
    ],
    ids=["a policy", "a user's own of the same name", "KEDA is gone"],
)
def test_a_scaler_that_is_refused_is_named_and_the_object_stays_ready(
    happen: Callable[[World], None], words: str
) -> None:
    world = without(AUTOSCALED, "ScaledObject")
    happen(world)
    assert world.reconcile() == Result(failed=True)
    assert said(world, "Ready", "Stalled", "Autoscaling") == [
        ("True", "Ready"),
        ("False", "NoStall"),
        ("False", "ApplyRefused"),
    ]
    assert words in world.cluster.condition("Autoscaling")["message"]
    assert [(each.type, each.reason) for each in world.cluster.events] == [("Warning", "ApplyRefused")]


def test_a_route_that_is_refused_is_named_and_the_object_stays_ready() -> None:
    world = without(ROUTED, "HTTPRoute")
    _a_policy(world)
    assert world.reconcile() == Result(failed=True)
    assert said(world, "Ready", "Routed") == [("True", "Ready"), ("False", "ApplyRefused")]
    assert world.cluster.condition("Routed")["message"].endswith("forbids to create it; the route stays as it is")
    assert [(each.type, each.reason) for each in world.cluster.events] == [("Warning", "ApplyRefused")]


@pytest.mark.parametrize(("state", "kind", "told_by"), OPTIONAL)
def test_what_is_refused_is_named_also_where_the_object_is_stalled(state: State, kind: str, told_by: str) -> None:
    world = without(state, kind, "Service")
    world.api.refused = {("create", kind), ("create", "Service")}
    for _ in range(3):
        assert world.reconcile() == Result(failed=True)
    # A route waits for the Services that it leads to.
    is_tried = kind != "HTTPRoute"
    told = ("False", "ApplyRefused") if is_tried else ("Unknown", "Waiting")
    assert said(world, "Stalled", told_by) == [("True", "ApplyRefused"), told]
    stalled = world.cluster.condition("Stalled")["message"]
    assert "Service digits: a policy forbids" in stalled
    *first, second = [each.message for each in world.cluster.events]
    assert [each.startswith(f"{told_by}: {kind} digits: ") for each in first] == [True] * is_tried
    assert second == stalled, "and what the plan took for granted is not posted"


@pytest.mark.parametrize(("state", "kind", "told_by"), OPTIONAL)
def test_what_is_refused_is_named_also_while_another_object_fails(state: State, kind: str, told_by: str) -> None:
    world = without(state, kind)
    world.cluster.objects["Service", "digits"]["spec"]["ports"] = []
    world.api.refused, world.api.broken = {("create", kind)}, {"Service"}
    assert world.reconcile() == Result(failed=True)
    world.cluster.now += TOLD_AFTER
    assert world.reconcile() == Result(failed=True)
    assert said(world, "Ready", "Reconciling", told_by) == [
        ("True", "Ready"),
        ("True", "ApplyFailed"),
        ("False", "ApplyRefused"),
    ]
    assert "Service digits: failed calling webhook" in world.cluster.condition("Reconciling")["message"]


def test_what_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = without(ROUTED, "HTTPRoute")
    _a_policy(world)
    world.reconcile()
    words = "vision/digits: HTTPRoute digits: a policy forbids to create it"
    assert {each.message for each in caplog.records if each.levelname == "WARNING"} == {words}
