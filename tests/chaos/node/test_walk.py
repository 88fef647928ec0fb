"""A random walk on the real node: edits, deletions by hand, evictions and dead operators, then one last spec."""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import Place, delayed, evict
from tests.conftest import Fault
from tests.e2e.applied import Applied
from tests.e2e.hosts import finished, service_selector
from tests.e2e.kubectl import KubectlError

STEPS = 30
LONGEST_PAUSE_SECONDS = 8.0
SPECS: tuple[Mapping[str, Any], ...] = ({}, delayed(100), delayed(200), {"suspend": True}, {"serving": {"replicas": 2}})
LAST: Mapping[str, Any] = delayed(100)
CHILDREN = ("job", "deployment", "service", "configmap", "networkpolicy")
WALK = "random walk: {} edits, deletions by hand, evictions, dead operators"


def test_a_random_walk_ends_at_the_fixpoint(place: Place, fault: Fault) -> None:
    seed = int(time.time())
    drawn = random.Random(seed)
    fault(WALK.format(STEPS), 1, f"seed {seed}")
    applied = place.new("walker")
    applied.wait_ready(applied.apply())
    wanted = applied.wait_ready(applied.apply(LAST)).state
    steps: tuple[Callable[[], object], ...] = (
        lambda: applied.apply(drawn.choice(SPECS)),
        lambda: delete_a_child(applied, drawn),
        lambda: evict_a_pod(applied, drawn),
        lambda: kill_an_operator(place, drawn),
    )
    walked = []
    for _ in range(STEPS):
        number = drawn.choices(range(len(steps)), (5, 3, 2, 1))[0]
        walked.append(number)
        steps[number]()
        time.sleep(drawn.uniform(0, LONGEST_PAUSE_SECONDS))
    began = time.monotonic()
    state = applied.wait_ready(applied.apply(LAST)).state
    assert state.revision == wanted.revision, (seed, walked)
    eventually(lambda: len(applied.children("deployments")) == 1, 60)
    (server,) = applied.children("deployments")
    assert server["metadata"]["name"] in service_selector(applied).values()
    # What cleans the claim runs after Ready.
    eventually(lambda: all(finished(job) for job in applied.jobs().values()), 120)
    place.kubectl.delete("td", applied.name)
    seconds = time.monotonic() - began
    fault(WALK.format(STEPS), 1, f"seed {seed}: the same revision, Ready {seconds:.0f} s after the last edit")


def delete_a_child(applied: Applied, drawn: random.Random) -> None:
    """Whichever there is."""
    names = [f"{kind}/{each['metadata']['name']}" for kind in CHILDREN for each in applied.children(kind)]
    applied.kubectl.run("delete", drawn.choice(names), "--ignore-not-found", "--wait=false")


def evict_a_pod(applied: Applied, drawn: random.Random) -> None:
    """A server's or a Job's, where one is there."""
    pods = [pod for pod in applied.children("pods") if pod["status"].get("phase") in ("Pending", "Running")]
    if pods:
        try:
            evict(applied.kubectl, drawn.choice(pods)["metadata"]["name"])
        except KubectlError as error:
            # It may have ended by itself.
            if "not found" not in str(error):
                raise


def kill_an_operator(place: Place, drawn: random.Random) -> None:
    """One of the replicas, at once."""
    pods = place.operator().items("pods")
    place.operator().run("delete", "pod", drawn.choice(pods)["metadata"]["name"], "--grace-period=0", "--force")
