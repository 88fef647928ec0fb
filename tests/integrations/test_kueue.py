"""The real Kueue: the objects of docs/kueue.md, with a quota for one Job."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apiserver.operator_process import eventually
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.state import State
from tests.integrations.conftest import Place

PAGE = Path(__file__).resolve().parents[2] / "docs/kueue.md"
ONE_JOB = "500m"
"""CPU of the quota, and of each Job."""


class Running:
    """How many Jobs of a namespace Kueue let run at once, at most, since it was started."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.most, self.jobs = 0, 0
        self._process = kubectl.stream("get", "jobs", "--watch", "--output=json", "--output-watch-events")
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _follow(self) -> None:
        """Events of one watch come in the order of the changes."""
        running: set[str] = set()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            job = event["object"]
            over = any(
                each["type"] in ("Complete", "Failed") and each["status"] == "True"
                for each in job["status"].get("conditions", [])
            )
            self.jobs += event["type"] == "ADDED"
            if event["type"] == "DELETED" or over or job["spec"].get("suspend"):
                running.discard(job["metadata"]["uid"])
            else:
                running.add(job["metadata"]["uid"])
            self.most = max(self.most, len(running))


def queue_of_the_page(namespace: str) -> list[Object]:
    """Its flavor and queues, with the quota for one Job and in the test's namespace."""
    block, *_ = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    flavor, cluster_queue, local_queue = yaml.safe_load_all(block)
    for each in cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
        if each["name"] == "cpu":
            each["nominalQuota"] = ONE_JOB
    local_queue["metadata"]["namespace"] = namespace
    return [flavor, cluster_queue, local_queue]


@pytest.fixture(scope="module")
def queue(place: Place) -> Iterator[Place]:
    bodies = queue_of_the_page(place.kubectl.namespace)
    place.kubectl.apply(*bodies)
    yield place
    place.kubectl.run("delete", "tritondeployments", "--all", "--wait=true", timeout=180)
    place.kubectl.run("delete", "jobs", "--all", "--wait=true", timeout=180)
    for each in reversed(bodies):
        place.kubectl.delete(each["kind"].lower(), each["metadata"]["name"])


def queued(applied: Applied) -> int:
    """Apply a smallest object whose Jobs wait in the queue; gives the generation."""
    labels = {"kueue.x-k8s.io/queue-name": "models"}
    return applied.apply({"conversion": {"pod": {"labels": labels, "resources": {"requests": {"cpu": ONE_JOB}}}}})


def waits(state: State) -> bool:
    return state.says("Ready", "Queued")


def test_two_objects_get_ready_and_never_run_two_jobs_at_once(queue: Place) -> None:
    running = Running(queue.kubectl)
    objects = [queue.new(name) for name in ("first", "second")]
    generations = [queued(each) for each in objects]
    for each, generation in zip(objects, generations, strict=True):
        each.wait_ready(generation)
    running.stop()
    assert running.jobs >= 2 * 4, "each object has at least these: source, reference, convert, profile"
    assert running.most == 1
    seen = [
        each.state.condition("Ready")["message"]
        for applied in objects
        for each in queue.watch.history(queue.kubectl.namespace, applied.name)
        if waits(each.state)
    ]
    assert seen, "one of them waited for the other"
    assert all("queue models" in message and "kubectl describe workloads" in message for message in seen)
    assert not [each for each in queue.kubectl.items("jobs") if each["spec"].get("suspend")], "none that is over"


def test_the_command_in_the_message_shows_what_kueue_waits_for(queue: Place) -> None:
    hold(queue, "Hold")
    applied = queue.new("held")
    generation = queued(applied)
    state = applied.wait("Queued", waits, generation=generation).state
    command = state.condition("Ready")["message"].rpartition("type: kubectl ")[2]
    eventually(lambda: "Workload" in queue.kubectl.run(*command.split()))
    hold(queue, "None")
    applied.wait_ready(generation)


def test_a_job_that_kueue_stops_in_the_middle_goes_on_later(queue: Place) -> None:
    applied = queue.new("drained")
    generation = queued(applied)
    eventually(lambda: any(each["status"].get("active") for each in applied.jobs("convert").values()), within=600)
    hold(queue, "HoldAndDrain")
    applied.wait("Queued", waits, generation=generation)
    hold(queue, "None")
    applied.wait_ready(generation)


def hold(place: Place, policy: str) -> None:
    """Let the LocalQueue stop: `Hold` admits no more, `HoldAndDrain` also suspends what runs, `None` goes on."""
    place.kubectl.run(
        "patch", "localqueue", "models", "--type=merge", "-p", json.dumps({"spec": {"stopPolicy": policy}})
    )
