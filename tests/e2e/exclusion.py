"""Two objects whose profiles would run at once: when the cluster's measurements ran, and what the waits said."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.suite import Suite

REQUESTS = {"apart-1": 1000, "apart-2": 1001}
"""In a window of each object's measurements. With the same number, one would take over the other's results."""
MEASURING = "triton-operator.dev/stage in (profile,search,measure)"


@dataclass(frozen=True)
class Ran:
    """A measurement's pod, while it had its node."""

    pod: str
    owner: str
    """Name of the TritonDeployment."""
    node: str
    begin: datetime
    end: datetime

    def overlaps(self, other: "Ran") -> bool:
        """Whether two objects measured at once on one node."""
        if self.owner == other.owner or self.node != other.node:
            return False
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class Exclusion:
    """What was seen until both objects were Ready."""

    ran: Sequence[Ran]
    """The measurements of all objects in the cluster."""
    waited: Sequence[str]
    """Types of the Events with the reason WaitingForNode."""


def run(suite: Suite) -> Exclusion:
    """Apply both at once and wait for Ready."""
    objects = [suite.new(name) for name in REQUESTS]
    with pods_seen(suite.busy) as seen:
        generations = [
            each.apply({"performance": {"measurement": {"requestCount": REQUESTS[each.name]}}}) for each in objects
        ]
        for each, generation in zip(objects, generations, strict=True):
            each.wait_ready(generation)
    events = suite.busy.items("events", "--field-selector=reason=WaitingForNode")
    waited = [event["type"] for event in events if event["involvedObject"]["name"] in REQUESTS]
    return Exclusion([ran(pod) for pod in seen.values() if ends(pod)], waited)


@contextmanager
def pods_seen(kubectl: Kubectl) -> Iterator[dict[str, Object]]:
    """The newest version of every measurement's pod, by its uid; complete when the block has ended."""
    seen: dict[str, Object] = {}
    over = threading.Event()

    def look() -> None:
        last = False
        while not last:
            last = over.wait(1.0)
            for pod in kubectl.items("pods", "--all-namespaces", f"--selector={MEASURING}"):
                seen[pod["metadata"]["uid"]] = pod

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def overlapping(ran: Sequence[Ran]) -> list[tuple[str, str]]:
    """Pairs of pods that measured at once on one node."""
    return [(one.pod, other.pod) for one, other in combinations(ran, 2) if one.overlaps(other)]


def ran(pod: Object) -> Ran:
    """When the pod had its node: from the scheduler's decision until its last container ended."""
    labels = pod["metadata"]["labels"]
    (scheduled,) = (each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")
    begin = datetime.fromisoformat(scheduled["lastTransitionTime"])
    owner = labels["triton-operator.dev/deployment"]
    return Ran(pod["metadata"]["name"], owner, pod["spec"]["nodeName"], begin, max(ends(pod)))


def ends(pod: Object) -> list[datetime]:
    """When the containers of a pod ended; empty while the main one goes on."""
    status = pod["status"]
    main = status.get("containerStatuses", [])
    if not main or not all("terminated" in each["state"] for each in main):
        return []
    every = [*main, *status.get("initContainerStatuses", [])]
    over = [each["state"]["terminated"] for each in every if "terminated" in each["state"]]
    return [datetime.fromisoformat(each["finishedAt"]) for each in over if each.get("finishedAt")]
