"""Three GPUs of a kind of their own, a server of two replicas: a new revision does not fit beside the old one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.node.place import Place, delayed
from tests.e2e.bad_inputs import EXCLUSIVE
from tests.e2e.hosts import service_selector
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.state import State

RESOURCE = "chaos.example/gpu"
COUNT = 3
SERVING = {"replicas": 2, "progressDeadlineSeconds": 60}


@dataclass(frozen=True)
class Room:
    """The object when it was first Ready, and what it said about each of two new revisions."""

    first: State
    made_way: tuple[State, ...]
    """What was seen while the second revision came up."""
    second: State
    failed: State
    """The third revision's two replicas may not be on one node."""
    selector_kept: bool
    replicas_back: int
    """Of what serves once the third revision has failed."""


def run(place: Place) -> Room:
    """Serve, roll out where there is no room, roll out what fails."""
    advertise(place.kubectl, COUNT)
    try:
        applied = place.new("roomless", gpu={"resourceName": RESOURCE, "count": 1}, serving=SERVING)
        first = applied.wait_ready(applied.apply()).state
        generation = applied.apply(delayed(100))
        second = applied.wait_ready(generation).state
        history = place.watch.history(place.kubectl.namespace, applied.name)
        during = tuple(each.state for each in history if each.state.generation == generation)
        selector = service_selector(applied)
        generation = applied.apply({**delayed(100), "serving": SERVING | {"pod": EXCLUSIVE}})
        applied.wait("a failed rollout", lambda state: state.holds("Stalled"), generation=generation)
        failed = applied.wait("the old revision", lambda state: state.holds("Available"), generation=generation).state
        kept = service_selector(applied) == selector
        (server,) = (each for each in applied.children("deployments") if serves(each, selector))
        place.kubectl.delete("td", applied.name)
        return Room(first, during, second, failed, kept, int(server["status"]["readyReplicas"]))
    finally:
        advertise(place.kubectl, None)


def serves(server: Object, selector: Mapping[str, str]) -> bool:
    """Whether the Service's selector names the Deployment."""
    return server["metadata"]["name"] in selector.values()


def advertise(kubectl: Kubectl, count: int | None) -> None:
    """Have the node offer so many; the scheduler counts them, and no device is behind them. None: none any more."""
    (node,) = kubectl.run("get", "nodes", "--output=name").split()
    amount = {RESOURCE: None if count is None else str(count)}
    patch = json.dumps({"status": {"capacity": amount, "allocatable": amount}})
    kubectl.run("patch", node, "--subresource=status", "--type=merge", f"--patch={patch}")
