"""Many objects in one installation: each has a cluster of its own in memory, and they share nodes and the queue."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.simulation.answers import GOOD, Script
from tests.simulation.cluster import Body, Cluster
from tests.simulation.edits import only
from tests.states.deployment import a_deployment
from triton_operator import names
from triton_operator.kube.kinds import JOB, POD
from triton_operator.observed.turn import MEASURING, Measurement, Turn
from triton_operator.runtime.known_jobs import KnownJobs, Owner
from triton_operator.runtime.store_facts import facts_of
from triton_operator.runtime.turns import Turns, Wish

SECONDS = 20
"""How long whatever measures takes."""


@dataclass
class Seat(Turns):
    """The queue as one object's operator meets it: all objects of the simulation have one name."""

    turns: Turns = field(default_factory=Turns)
    key: Owner = ("", "")

    def ask(self, key: Owner, wish: Wish, *rest: Any) -> Turn:
        """Ask under the object's own name."""
        return self.turns.ask(self.key, wish, *rest)

    def hold(self, key: Owner, job: str, now: datetime, *, keeps_off: bool) -> Turn:
        """Hold under the object's own name."""
        return self.turns.hold(self.key, job, now, keeps_off=keeps_off)

    def passed(self, key: Owner, measuring: Callable[[], Collection[Measurement]]) -> None:
        """End the object's pass."""
        self.turns.passed(self.key, measuring)

    def leave(self, key: Owner) -> None:
        """Leave the queue."""
        self.turns.leave(self.key)


@dataclass
class Member:
    """One object of the installation."""

    owner: Owner
    cluster: Cluster
    stuck: bool = False
    """Whether no node takes its Jobs that measure."""
    ends: dict[str, datetime] = field(default_factory=dict)
    """When each Job that measures ends, by its key."""
    changes: int = 1

    @property
    def serves(self) -> bool:
        """Whether the object is Ready."""
        conditions = self.cluster.status.get("conditions", [])
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if stage not in MEASURING:
            return GOOD
        if self.stuck:
            refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
            return Script(pending={"phase": "Pending", "conditions": [refused]})
        end = self.ends.setdefault(request.key, self.cluster.now + timedelta(seconds=SECONDS))
        return Script(hangs=True) if self.cluster.now < end else GOOD


def measuring(clusters: Iterable[tuple[Owner, Cluster]]) -> list[Measurement]:
    """What a store knows of Jobs that measure, of objects by their names."""
    known = KnownJobs()
    for owner, cluster in clusters:
        for kind in (JOB, POD):
            for body in cluster.of_kind(kind.kind):
                known.put(owner, kind, body["metadata"]["name"], facts_of(kind, body).load)
    return known.measuring()


class Installation:
    """Objects of several namespaces, and the nodes on which they are measured."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        nodes: Sequence[str],
        *,
        reads_nodes: bool = True,
        chance: Random | None = None,
        stuck: Sequence[Owner] = (),
    ) -> None:
        """``sizes``: objects by namespace. ``stuck``: those whose Jobs no node takes."""
        self.nodes, self._chance = nodes, chance or Random(0)
        self.began: list[Owner] = []
        """Whose Job that measures was made, in that order."""
        self.turns = Turns(self._wake)
        self.members: list[Member] = []
        for owner in [(namespace, f"object-{number}") for namespace, size in sizes.items() for number in range(size)]:
            cluster = a_deployment().asking(only("onnx-fp32", "ts-trace-fp32")).cluster()
            member = Member(owner, cluster, owner in stuck)
            cluster.scripts, cluster.uid = member, "/".join(owner)
            cluster.measuring_nodes = nodes if reads_nodes else None
            cluster.places = self._place
            cluster.measured_beside = self.measuring
            cluster.turns = Seat(turns=self.turns, key=owner)
            self.members.append(member)

    def restart(self) -> None:
        """Another replica takes over, whose queue is empty."""
        self.turns = Turns(self._wake)
        for each in self.members:
            each.cluster.turns = Seat(turns=self.turns, key=each.owner)

    def _wake(self, key: Owner) -> None:
        next(each for each in self.members if each.owner == key).changes += 1

    def measuring(self) -> list[Measurement]:
        """What the store knows of Jobs that measure."""
        return measuring((each.owner, each.cluster) for each in self.members)

    def loads(self) -> dict[str, list[Owner]]:
        """Whose Jobs measure now, by node."""
        found: dict[str, list[Owner]] = {}
        for member in self.members:
            for pod in member.cluster.of_kind("Pod"):
                is_on = pod["status"].get("phase") not in ("Succeeded", "Failed") and "nodeName" in pod["spec"]
                if pod["metadata"]["labels"].get(names.STAGE_LABEL) in MEASURING and is_on:
                    found.setdefault(pod["spec"]["nodeName"], []).append(member.owner)
        return found

    def steps(self, until: Callable[[], object], most: int = 4000) -> Iterator[int]:
        """Passes and steps of all objects in turn, until that holds; yields a number after each."""
        for number in range(most):
            if until():
                return
            for member in self.members:
                before = member.cluster.started("profile") + member.cluster.started("measure")
                member.cluster.act_on(member.changes)
                member.changes = member.cluster.step()
                after = member.cluster.started("profile") + member.cluster.started("measure")
                self.began += [member.owner] * (after - before)
            yield number
        raise AssertionError(f"it did not come about in {most} steps")

    def serve(self) -> bool:
        """Whether every object is Ready, but for those whose Jobs no node takes."""
        return all(each.stuck or each.serves for each in self.members)

    def _place(self, pod: Body) -> str:
        """The scheduler: any node that the pod does not keep off."""
        if pod["metadata"]["labels"].get(names.STAGE_LABEL) not in MEASURING:
            return ""
        required = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        terms = [each for rule in required.values() for each in rule["nodeSelectorTerms"]]
        kept_off = {name for each in terms for field in each["matchFields"] for name in field["values"]}
        return self._chance.choice([each for each in self.nodes if each not in kept_off] or [""])
