"""One walk: steps, checked passes between them, and an end where everything is well again."""

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from tests.simulation.api_server import KEY, Body, BrokenError, require
from tests.simulation.cluster import SETTINGS, STEP, Cluster, accepted
from tests.simulation.deployments import a_spec
from tests.simulation.walk.edits import EDITS, FOLLOWED, GPU
from tests.simulation.walk.happenings import ROWS, draw
from tests.simulation.walk.invariants import check_available, check_measurements, check_status
from tests.simulation.walk.world import World
from triton_operator import names
from triton_operator.runtime.queue import Result

LENGTH = 40
"""Steps of one walk; then another begins with a new object."""
FOLLOWING = 0.5
"""Share of the walks whose object follows its source from the beginning."""
DARK_SECONDS = 3000.0
"""Longest time without an answer where one server at least could run: deadlines of a server and of a measurement."""
LONGEST_PAUSE_SECONDS = 60.0
MOST_ROUNDS = 900
"""Of an object at whose end nothing fails any more."""
FOLLOWED_SECONDS = 1200.0
"""Within which a version of a source with an interval of 5 minutes is found and serves."""
PASSES_AT = ("time passes", "an hour passes")
Step = tuple[str, Any]


@dataclass(frozen=True)
class Failed:
    """A walk that ended because something did not hold."""

    gpus: int | None
    steps: tuple[Step, ...]
    why: str


@dataclass
class Walk:
    """One object, and what happens to it."""

    gpus: int | None
    dark: float = 0.0
    """Seconds without an answer while a server could run."""
    taken: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(Cluster(_asked(self.gpus), gpus=self.gpus))

    def take(self, step: Step) -> None:
        """Let one thing happen, and what follows from it."""
        name, what = step
        self.taken.append(step)
        if name == "the operator's clock":
            # All that it waits for may take so much longer.
            self.dark = min(0.0, what - self.world.skew.total_seconds())
        ROWS[name].happen(self.world, what)
        self.run(what if name in PASSES_AT else 4)

    def run(self, seconds: float) -> None:
        """Let time pass. Where nothing moves, it is left out until the operator wants to look again."""
        cluster = self.world.cluster
        end, idle = cluster.now + timedelta(seconds=seconds), 0
        while cluster.now < end:
            result, moved = self._round()
            idle = 0 if moved else idle + 1
            left = (end - cluster.now).total_seconds()
            if not moved and left > 0:
                pause = min(left, _pause(result, idle))
                cluster.now += timedelta(seconds=pause)
                self._look(pause)

    def settle(self) -> None:
        """Let time pass until nothing moves; fails where that does not come about."""
        idle = 0
        for _ in range(MOST_ROUNDS):
            result, moved = self._round()
            idle = 0 if moved else idle + 1
            if idle and result == Result():
                return
            if idle:
                self.world.cluster.now += timedelta(seconds=_pause(result, idle))
        raise BrokenError(f"no end: {self.world.cluster.condition('Ready')} {self.world.cluster.story[-4:]}")

    def _round(self) -> tuple[Result, bool]:
        """Passes, and one step of all controllers; whether anything changed."""
        cluster, before = self.world.cluster, self.world.api.count
        result = self.world.reconcile()
        check_measurements(cluster)
        if not result.failed:
            check_available(cluster, self.world.service)
        changes = cluster.step()
        self._look(STEP.total_seconds())
        return result, changes > 0 or self.world.api.count != before

    def _look(self, seconds: float) -> None:
        """Count the time in which nothing answers although what is active could."""
        if self._answers() or not self._could():
            self.dark = 0.0
            return
        self.dark += seconds
        active = self.world.service.active
        require(self.dark <= DARK_SECONDS, f"nothing has answered for {self.dark:.0f} s, and {active} could")

    def _answers(self) -> bool:
        cluster = self.world.cluster
        deployment = cluster.objects.get(("Deployment", cluster.serving() or ""))
        return deployment is not None and deployment["status"].get("readyReplicas", 0) > 0

    def _could(self) -> bool:
        """Whether what is active would run if the operator wished, or the one that the Service points to by hand."""
        world, cluster, active = self.world, self.world.cluster, self.world.service.active
        there = ("Deployment", active) in cluster.objects or world.service.is_recorded
        wanted = cluster.spec.get("serving", {}).get("replicas", 1) > 0
        nodes = (cluster.gpus is None or cluster.gpus > 0) and not cluster.unschedulable
        deployment = cluster.objects.get(("Deployment", active or ""))
        # While the spec is refused, only what a rollout took comes back.
        makes_way = deployment is not None and names.MAKES_WAY_ANNOTATION in deployment["metadata"]["annotations"]
        is_refused = cluster.spec.get("conversion", {}).get("parallelism") == 99
        free = not world.api.refused and not world.api.broken and (makes_way or not is_refused)
        sound = not any(cluster.damaged(key) for key in self._keys())
        return active is not None and there and wanted and nodes and free and sound and cluster.starts(active)

    def _keys(self) -> list[str]:
        return [each["metadata"]["labels"][names.KEY_LABEL] for each in self.world.cluster.of_kind("Deployment")]

    def end(self) -> None:
        """Let everything be well, and look that the object is."""
        world, cluster = self.world, self.world.cluster
        world.api.refused, world.api.broken, world.api.fails_after, world.skew = set(), set(), None, timedelta()
        world.scripts, cluster.starts, cluster.damaged = {}, lambda name: True, lambda revision: ""
        cluster.gpus, cluster.gpu_quota, cluster.quota, cluster.unschedulable = self.gpus, False, None, ""
        cluster.gateway, cluster.injects, cluster.settings = accepted, "", SETTINGS
        cluster.gpu_product_exists = None
        cluster.measured_beside = tuple
        for job in cluster.of_kind("Job"):
            job["spec"].pop("suspend", None)
        world.start()
        cluster.retry()
        cluster.spec = {}
        world.edit(**_asked(self.gpus))
        self.settle()
        ready = cluster.condition("Ready")
        if ready["reason"] == "WorseThanBefore" or "ThresholdNotMet" in ready["message"]:
            # What was judged of these files stands, until somebody corrects them.
            world.edit(source={"uri": "pvc://models/corrected"})
            self.settle()
        ready = cluster.condition("Ready")
        require(ready["status"] == "True", f"in the end it is not ready: {ready}")
        require(self._answers(), "in the end nothing answers")
        check_status(cluster.status)
        before = world.api.count
        require(world.operator.reconcile(KEY) == Result() and world.api.count == before, "a pass at rest writes")
        self._follow()

    def _follow(self) -> None:
        """Let the object follow its source, and look that the version that this has by now serves."""
        self.world.edit(**EDITS["source: followed"])
        self.world.origin.says = ["good-9"]
        self.run(FOLLOWED_SECONDS)
        source, newest = self.world.cluster.status["source"], self.world.cluster.condition("UpToDate")
        found = (source["latest"]["version"], source["serving"]["version"], newest["status"])
        require(found == ("good-9", "good-9", "True"), f"in the end good-9 is offered: {found}: {newest}")


def _asked(gpus: int | None) -> Body:
    """The spec with which a walk begins and ends."""
    return a_spec(**({"gpu": GPU, "serving": {"progressDeadlineSeconds": 300}} if gpus else {}))


def _pause(result: Result, idle: int) -> float:
    """Seconds until the operator looks again; longer, as on a slow machine, where it looked in vain several times."""
    asked = result.again_after or (10.0 if result.failed else float("inf"))
    return max(asked, min(LONGEST_PAUSE_SECONDS, 2.0**idle))


def replay(gpus: int | None, steps: Sequence[Step]) -> Walk:
    """Walk by a list; raises BrokenError where something does not hold."""
    walk = Walk(gpus)
    for each in steps:
        walk.take(each)
    walk.end()
    return walk


def why(gpus: int | None, steps: Sequence[Step]) -> str:
    """Why a walk fails; empty: it does not."""
    try:
        replay(gpus, steps)
    except BrokenError as error:
        return str(error)
    except Exception as error:
        return "".join(traceback.format_exception(error)[-4:])
    return ""


def drawn(seed: int) -> Iterator[tuple[int | None, list[Step]]]:
    """Yield walks to take, without end."""
    chance = Random(seed)
    while True:
        first = ("an edit", chance.choice(FOLLOWED)) if chance.random() < FOLLOWING else draw(chance)
        yield chance.choice([None, 1, 1, 2, 4]), [first, *(draw(chance) for _ in range(LENGTH - 1))]
