"""A random walk over plan(): people, faults and time change one object in any order, and some things always hold.

``python3 -m tests.simulation.walk --steps 1000000 --seed 1`` walks until something does not hold, and then prints the
shortest walk that it finds which ends so too.
"""

import argparse
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.simulation.answers import GOOD
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.test_properties import EDITS, FATES, STAGES, told
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.api.deployment import parse

LENGTH = 40
"""Happenings of one walk; then it starts with a new object."""
DARK_SECONDS = 3000
"""Longest time without an answer where one server at least could run: deadlines of a server and of a measurement."""
GPU = {"resourceName": "nvidia.com/gpu", "count": 1}
SERVING: tuple[dict[str, Any], ...] = (
    {"replicas": 0},
    {"replicas": 1},
    {"replicas": 3},
    {"progressDeadlineSeconds": 30},
    {"progressDeadlineSeconds": 300},
    {"soak": {"duration": "1m"}},
    {"soak": {"duration": "1m"}, "route": {"parentRefs": [{"name": "gateway"}], "canary": [5, 50]}},
    {"autoscaling": {"minReplicas": 1, "maxReplicas": 3}},
    {"backendConfig": [{"name": "default-max-batch-size", "value": "4"}]},
)
CHILDREN = ("Job", "Deployment", "Service", "ConfigMap", "NetworkPolicy", "ScaledObject", "HTTPRoute")
Happening = tuple[str, Any]


@dataclass
class Walk:
    """One object, and what happened to it."""

    cluster: Cluster
    dark: float = 0.0
    """Seconds without an answer while a server could run."""
    passes: int = 0
    told: list[Happening] = field(default_factory=list)

    def happen(self, happening: Happening) -> None:
        """Let one thing happen, and two passes after it."""
        self.told.append(happening)
        HAPPENINGS[happening[0]](self.cluster, happening[1])
        self.run(happening[1] if happening[0] == "time passes" else 2)

    def run(self, steps: int) -> None:
        """Checked passes and steps in turn."""
        for _ in range(steps):
            self._pass()
            before = self.cluster.now
            self.cluster.step()
            self._look((self.cluster.now - before).total_seconds())

    def settle(self) -> None:
        """Checked passes until nothing changes; fails where that does not come about."""
        for _ in range(600):
            if self._pass() + self.cluster.step() == 0 and self.cluster.intent().requeue_after is None:
                return
        raise AssertionError(f"no end: {self.cluster.condition('Ready')}")

    def _pass(self) -> int:
        self.passes += 1
        cluster = self.cluster
        jobs, data = {name for kind, name in cluster.objects if kind == "Job"}, _recorded(cluster)
        wanted = cluster.intent()
        _check_objects(wanted.objects)
        writes = cluster.act()
        for job in cluster.of_kind("Job"):
            labels = job["metadata"]["labels"]
            record = record_name(labels[names.STAGE_LABEL], labels[names.KEY_LABEL])
            if job["metadata"]["name"] not in jobs:
                assert record not in data, f"{record} is recorded, and its Job runs again"
        parse(cluster.body())
        return writes

    def _look(self, seconds: float) -> None:
        """Count the time in which nothing answers although the active server could."""
        cluster = self.cluster
        active = cluster.serving()
        deployment = cluster.objects.get(("Deployment", active or ""))
        answers = deployment is not None and deployment["status"].get("readyReplicas", 0) > 0
        wanted = cluster.spec.get("serving", {}).get("replicas", 1) > 0
        if answers or active is None or not wanted or not _could_run(cluster, active):
            self.dark = 0.0
            return
        self.dark += seconds
        assert self.dark <= DARK_SECONDS, f"nothing has answered for {self.dark:.0f} s, and {active} could"


def _could_run(cluster: Cluster, server: str) -> bool:
    return (cluster.gpus is None or cluster.gpus > 0) and not cluster.unschedulable and cluster.starts(server)


def _recorded(cluster: Cluster) -> set[str]:
    found = cluster.objects.get(("ConfigMap", "digits-results"))
    return set(found["data"]) if found is not None else set()


def _check_objects(objects: Sequence[dict[str, Any]]) -> None:
    named = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(named) == len(set(named)), f"two objects of one name: {sorted(named)}"
    for each in objects:
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        for container in (*pod.get("initContainers", []), *pod.get("containers", [])):
            paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
            assert len(paths) == len(set(paths)), f"{each['metadata']['name']} mounts one path twice"


def _edit(cluster: Cluster, fields: dict[str, Any]) -> None:
    cluster.edit(**deepcopy(fields))


def _serve(cluster: Cluster, fields: dict[str, Any]) -> None:
    cluster.edit(serving={**cluster.spec.get("serving", {}), **deepcopy(fields)})


def _approve(cluster: Cluster, number: int) -> None:
    keys = [each["key"] for each in cluster.status.get("candidates", []) if "key" in each]
    if keys:
        cluster.edit(selection={"approval": "Manual", "approvedRevision": keys[number % len(keys)]})


def _delete(cluster: Cluster, kind: str) -> None:
    for name in [each["metadata"]["name"] for each in cluster.of_kind(kind)]:
        cluster.delete(kind, name)


def _point(cluster: Cluster, number: int) -> None:
    """Somebody edits the Service's selector."""
    service = cluster.objects.get(("Service", "digits"))
    servers = [each["metadata"]["name"] for each in cluster.of_kind("Deployment")]
    if service is not None:
        service["spec"]["selector"][names.REVISION_LABEL] = [*servers, "digits-nobody"][number % (len(servers) + 1)]


def _scale(cluster: Cluster, replicas: int) -> None:
    """Somebody edits the replicas of every Deployment."""
    for each in cluster.of_kind("Deployment"):
        each["spec"]["replicas"] = replicas
        each["metadata"]["generation"] += 1


def _reboot(cluster: Cluster, _: None) -> None:
    """A node: every server is started again."""
    for pod in cluster.of_kind("Pod"):
        if names.REVISION_LABEL in pod["metadata"]["labels"] and pod["status"]["phase"] == "Running":
            cluster.restart(pod["metadata"]["name"])


def _lose(cluster: Cluster, number: int) -> None:
    """A record is lost."""
    found = cluster.objects.get(("ConfigMap", "digits-results"))
    if found is not None and found["data"]:
        del found["data"][sorted(found["data"])[number % len(found["data"])]]


def _set(name: str) -> Callable[[Cluster, Any], None]:
    return lambda cluster, value: setattr(cluster, name, value)


def _upgrade(cluster: Cluster, version: int) -> None:
    cluster.settings = replace(cluster.settings, converter_image=f"example/converter:{version}")


def _starts(cluster: Cluster, which: str) -> None:
    active = cluster.serving()
    cluster.starts = {
        "all": lambda name: True,
        "none but the active one": lambda name: name == active,
    }[which]


HAPPENINGS: dict[str, Callable[[Cluster, Any], None]] = {
    "time passes": lambda cluster, steps: None,
    "the clock jumps": lambda cluster, seconds: setattr(cluster, "now", cluster.now + timedelta(seconds=seconds)),
    "an edit": _edit,
    "an edit of serving": _serve,
    "suspended": lambda cluster, value: cluster.edit(suspend=value),
    "an approval": _approve,
    "a retry": lambda cluster, _: cluster.retry(),
    "fates": lambda cluster, choices: setattr(cluster, "fates", told(choices)),
    "servers start": _starts,
    "GPUs": _set("gpus"),
    "a quota on GPUs": _set("gpu_quota"),
    "Kueue": _set("quota"),
    "KEDA": _set("has_keda"),
    "the Gateway API": _set("has_gateway_api"),
    "deleted by hand": _delete,
    "a selector by hand": _point,
    "replicas by hand": _scale,
    "a reboot": _reboot,
    "a record is lost": _lose,
    "an upgrade": _upgrade,
}


def choices(chance: random.Random) -> Happening:
    """Draw one happening."""
    drawn: dict[str, Callable[[], Any]] = {
        "time passes": lambda: chance.randrange(1, 40),
        "the clock jumps": lambda: chance.choice([10, 100, 1000]),
        "an edit": lambda: chance.choice([*EDITS, {"gpu": GPU}]),
        "an edit of serving": lambda: chance.choice(SERVING),
        "suspended": lambda: chance.random() < 0.3,
        "an approval": lambda: chance.randrange(6),
        "a retry": lambda: None,
        "fates": lambda: {(stage, ""): chance.choice(FATES) for stage in chance.sample(STAGES, chance.randrange(3))},
        "servers start": lambda: chance.choice(["all", "none but the active one"]),
        "GPUs": lambda: chance.choice([None, 1, 1, 2, 3]),
        "a quota on GPUs": lambda: chance.random() < 0.3,
        "Kueue": lambda: chance.choice([None, 0, 1]),
        "KEDA": lambda: chance.random() < 0.5,
        "the Gateway API": lambda: chance.random() < 0.5,
        "deleted by hand": lambda: chance.choice(CHILDREN),
        "a selector by hand": lambda: chance.randrange(4),
        "replicas by hand": lambda: chance.randrange(3),
        "a reboot": lambda: None,
        "a record is lost": lambda: chance.randrange(40),
        "an upgrade": lambda: chance.randrange(3),
    }
    weights = [12 if name == "time passes" else 4 if name.startswith("an edit") else 1 for name in drawn]
    (name,) = chance.choices(list(drawn), weights)
    return name, drawn[name]()


def begin(gpus: int | None) -> Walk:
    """A new object, of which nothing has happened yet."""
    fields = {"gpu": GPU, "serving": {"progressDeadlineSeconds": 300}} if gpus else {}
    # What is held has no end while nobody asks the servers.
    return Walk(Cluster(a_spec(rollout={"onInconclusive": "Continue"}, **fields), gpus=gpus))


def end(walk: Walk) -> None:
    """Let everything be well, and look that the object is."""
    cluster = walk.cluster
    walk.run(2)
    cluster.fates, cluster.starts = lambda *_: GOOD, lambda name: True
    cluster.gpus, cluster.gpu_quota, cluster.quota, cluster.unschedulable = None, False, None, ""
    for job in cluster.of_kind("Job"):
        job["spec"].pop("suspend", None)
    cluster.retry()
    cluster.edit(suspend=False, selection={}, performance={}, serving={})
    walk.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Ready")


def replay(gpus: int | None, happenings: Sequence[Happening]) -> Walk:
    """Walk by a list; raises what does not hold."""
    walk = begin(gpus)
    for each in happenings:
        walk.happen(each)
    end(walk)
    return walk


def walks(seed: int, steps: int) -> Iterator[tuple[int | None, list[Happening], int]]:
    """Yield walks until so many passes were made: the GPUs, what happened, and the passes so far."""
    chance, passes = random.Random(seed), 0  # noqa: S311 - not for secrets
    while passes < steps:
        gpus = chance.choice([None, 1, 1, 2, 4])
        happenings = [choices(chance) for _ in range(LENGTH)]
        passes += replay_told(gpus, happenings).passes
        yield gpus, happenings, passes


class FellError(Exception):
    """A walk that ended because something did not hold."""

    def __init__(self, gpus: int | None, happenings: list[Happening], why: str) -> None:
        self.gpus, self.happenings, self.why = gpus, happenings, why
        super().__init__("\n".join([f"GPUs: {gpus}", *(f"  {name}: {what}" for name, what in happenings), why]))


def replay_told(gpus: int | None, happenings: list[Happening]) -> Walk:
    """Walk by a list; raises FellError with the shortest list that ends so too."""
    try:
        return replay(gpus, happenings)
    except Exception:
        raise shortest(gpus, happenings) from None


def shortest(gpus: int | None, happenings: list[Happening]) -> FellError:
    """Leave out whatever can be left out so that the walk still fails."""
    why, kept = _why(gpus, happenings) or "", list(happenings)
    size = len(kept) // 2
    while size:
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            if found := _why(gpus, fewer):
                kept, why = fewer, found
                break
        else:
            size //= 2
    return FellError(gpus, kept, why)


def _why(gpus: int | None, happenings: list[Happening]) -> str:
    try:
        replay(gpus, happenings)
    except Exception as error:
        return "".join(traceback.format_exception(error)[-2:])
    return ""


def main() -> int:
    """Walk so many passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        for number, (_, _, passes) in enumerate(walks(options.seed, options.steps), start=1):
            if number % 20 == 0:
                print(f"{number} walks, {passes} passes", flush=True)
    except FellError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
