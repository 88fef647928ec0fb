"""`python3 -m bench.nights`: what a night costs of objects that follow their sources and share one measuring node.

Simulated: the real Reconciler for each object with the one queue of those that measure, and Jobs that take as long as
SECONDS says. The first night tries all candidates, as one night of each week does; the second one tries the winner.
"""

import argparse
import logging
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from os import getpid
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.scale.process import usage
from tests.simulation.answers import Script
from tests.simulation.cluster import Cluster
from tests.simulation.edits import only
from tests.simulation.installation import Seat, measuring
from tests.simulation.registry import Registry, following
from triton_converters.contract.stages import STAGES
from triton_operator.observed.turn import Measurement
from triton_operator.runtime.turns import Turns

OBJECTS = 60
CANDIDATES = ("onnx-fp32", "onnx-fp16", "ts-trace-fp32", "ts-script-fp32")
SWEEPS = {"under 10 ms": 20, "longer": 180}
"""Seconds of all sweeps of a candidate, by what a request takes, without `performance.online` (docs/measuring.md)."""
SECONDS = {"look": 3, "source": 10, "reference": 20, "convert": 20, "metrics": 10, "comparison": 10, "clean": 3}
"""How long Jobs take, with their pods' start: assumed for a model of some 100 MB."""
AROUND_SWEEPS_SECONDS = 15
"""What a Job that measures does besides its sweeps: its server starts, and the gates compare answers. Assumed."""
NAMESPACE, NODE = "vision", "the-node"
MEASURE_SHARE = 0.5
"""What a candidate that is measured through its Service takes of the time of all sweeps. Assumed: 3 points of 6."""


@dataclass
class Timed:
    """The source's server and the Jobs of one object, which take their time."""

    cluster: Cluster
    registry: Registry
    sweeps_seconds: int
    ends: dict[str, datetime] = field(default_factory=dict)
    """When each Job that started ends, by its key."""

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """How a Job fares."""
        if request.key not in self.ends:
            self.ends[request.key] = self.cluster.now + timedelta(seconds=self._seconds(stage))
        if self.cluster.now < self.ends[request.key]:
            return Script(hangs=True)
        return self.registry(stage, candidate, request)

    def _seconds(self, stage: str) -> float:
        share = {"profile": 1.0, "measure": MEASURE_SHARE}.get(stage)
        return SECONDS[stage] if share is None else AROUND_SWEEPS_SECONDS + share * self.sweeps_seconds


@dataclass
class Night:
    """What a night cost, from the moment that all versions were there."""

    hours: float
    """Until the last object served."""
    jobs: Counter[str]
    """How many Jobs ran, by stage."""
    writes: int
    """How many times the operator wrote to the API server."""


class Objects:
    """Objects that follow a folder of a bucket each, in one namespace, and the time that passes for all of them."""

    def __init__(self, count: int, sweeps_seconds: int) -> None:
        self.turns = Turns(self._wake)
        self.jobs: list[Timed] = []
        for number in range(count):
            cluster, registry = following("s3")
            cluster.ask(only(*CANDIDATES))
            cluster.uid = f"owner-{number}"
            cluster.scripts = Timed(cluster, registry, sweeps_seconds)
            cluster.turns = Seat(turns=self.turns, key=(NAMESPACE, str(number)))
            cluster.places, cluster.measured_beside = lambda pod: NODE, self._measuring
            self.jobs.append(cluster.scripts)
        self.changes = [1] * count

    def _wake(self, key: tuple[str, str]) -> None:
        self.changes[int(key[1])] += 1

    def _measuring(self) -> list[Measurement]:
        owners = ((number, each.cluster) for number, each in enumerate(self.jobs))
        return measuring(((NAMESPACE, str(number)), cluster) for number, cluster in owners)

    @property
    def now(self) -> datetime:
        """The time, which is the same for all."""
        return self.jobs[0].cluster.now

    def night(self, version: str) -> Night:
        """All sources have this version, and time passes until it serves everywhere."""
        begun, since, writes = self.now, [len(each.cluster.story) for each in self.jobs], 0
        for each in self.jobs:
            each.registry.offers = version
        while {each.registry.served(each.cluster) for each in self.jobs} != {version}:
            assert self.now < begun + timedelta(days=2), f"{version} does not serve everywhere"
            wrote = self._turn()
            writes += wrote
            if not wrote and not any(self.changes):
                self._wait()
        started = (each for jobs, at in zip(self.jobs, since, strict=True) for each in jobs.cluster.story[at:])
        return Night((self.now - begun) / timedelta(hours=1), Counter(each.split()[0] for each in started), writes)

    def _turn(self) -> int:
        """A pass of each object that has something to do, and a step of all; how many writes the passes made."""
        looks = [len(each.cluster.active("look")) for each in self.jobs]
        writes = 0
        for number, cluster in enumerate(each.cluster for each in self.jobs):
            cluster.looks_beside = sum(looks) - looks[number]
            writes += cluster.act_on(self.changes[number])
            looks[number] = len(cluster.active("look"))
            self.changes[number] = cluster.step()
        return writes

    def _wait(self) -> None:
        """Leave out the time in which nothing happens."""
        ends = [end for each in self.jobs for end in each.ends.values()]
        due = [each.cluster.due for each in self.jobs if each.cluster.due is not None]
        until = min(each for each in (*ends, *due) if each > self.now)
        for each in self.jobs:
            each.cluster.now = until


def nights(count: int, sweeps_seconds: int) -> tuple[list[Night], float]:
    """Two nights of so many objects, and the MiB that the process holds after them."""
    # What the operator imports, so that the resident size is comparable.
    from triton_operator import __main__  # noqa: F401 - what its import takes is measured

    logging.disable(logging.CRITICAL)
    objects = Objects(count, sweeps_seconds)
    return [objects.night(version) for version in ("v1", "v2")], usage(getpid()).resident_mib


def main() -> None:
    """Take two nights for each row, and print the table."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.nights", description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS, help=f"how many; default: {OBJECTS}")
    count = parser.parse_args().objects
    table = Table(title=f"{count} objects, one node that measures", title_justify="left")
    for heading in ("a request takes", "tried", "hours", "looks", "downloads", "other Jobs", "writes", "MiB"):
        table.add_column(heading, justify="right")
    with ProcessPoolExecutor() as pool:
        found = pool.map(nights, [count] * len(SWEEPS), SWEEPS.values())
        for requests, (both, mib) in zip(SWEEPS, found, strict=True):
            for tried, night in zip(("all four", "the winner"), both, strict=True):
                looks, downloads = night.jobs.pop("look"), night.jobs.pop("source")
                others = ", ".join(f"{number} {stage}" for stage, number in night.jobs.items() if stage in STAGES)
                cells = (tried, f"{night.hours:.1f}", looks, downloads, others, f"{night.writes:,}", f"{mib:.0f}")
                table.add_row(requests, *map(str, cells))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
