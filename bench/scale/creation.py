"""Creates TritonDeployments and records when each one gets its first Job."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.first_job import deployment
from bench.scale.api import CLAIMS, DEPLOYMENTS, JOBS, Api, Resource

CONCURRENCY = 20
"""How many requests of a burst are in flight at a time."""
SECONDS = 900
"""How long to wait until every object has a Job."""
CHILDREN = {"job": JOBS, "claim": CLAIMS}
"""The watched kinds; the claim is the first child, the Job the first that does work."""


@dataclass
class Creation:
    """Moments of time.monotonic(), by the name of the TritonDeployment."""

    start: float = 0.0
    sent: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    seen: dict[str, dict[str, float]] = field(default_factory=lambda: {child: {} for child in CHILDREN})
    """When the first child of each kind was received from a watch."""

    def latencies(self, child: str) -> list[float]:
        """Return the milliseconds from sending each object to receiving its child."""
        return [1000 * (moment - self.sent[name]) for name, moment in self.seen[child].items()]

    def all_seconds(self, child: str) -> float:
        """Return the time from the start until the last object had its child."""
        return max(self.seen[child].values()) - self.start

    @property
    def created_seconds(self) -> float:
        """Return the time from the start until the API server had accepted the last object."""
        return max(self.answered.values()) - self.start


async def create(api: Api, prefix: str, count: int, interval: float | None) -> Creation:
    """Create `count` objects, one every `interval` seconds (None: as fast as possible), and wait for their Jobs.

    Raises TimeoutError.
    """
    made = Creation()
    async with _watched(api, made, count) as complete:
        made.start = time.monotonic()
        names = iter([f"{prefix}-{number:04d}" for number in range(count)])
        if interval is None:
            await asyncio.gather(*(_create_each(api, made, names) for _ in range(CONCURRENCY)))
        else:
            await _create_paced(api, made, names, interval)
        await asyncio.wait_for(complete.wait(), SECONDS)
    return made


async def _create_each(api: Api, made: Creation, names: Iterator[str]) -> None:
    for name in names:
        await _create(api, made, name)


async def _create_paced(api: Api, made: Creation, names: Iterator[str], interval: float) -> None:
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, made.start + number * interval - time.monotonic()))
            group.create_task(_create(api, made, name))


async def _create(api: Api, made: Creation, name: str) -> None:
    body = json.dumps(deployment(name) | {"metadata": {"name": name}})
    made.sent[name] = time.monotonic()
    await api.create(DEPLOYMENTS, body)
    made.answered[name] = time.monotonic()


@contextlib.asynccontextmanager
async def _watched(api: Api, made: Creation, count: int) -> AsyncIterator[asyncio.Event]:
    """Record the children that appear within the block; the event is set once every object has its own."""
    complete = asyncio.Event()

    async def follow(child: str, resource: Resource, started: asyncio.Event) -> None:
        def added(metadata: dict[str, Any]) -> None:
            for owner in metadata.get("ownerReferences", []):
                if owner["name"] in made.sent:
                    made.seen[child].setdefault(owner["name"], time.monotonic())
            if all(len(seen) == count for seen in made.seen.values()):
                complete.set()

        await api.watch(resource, added, started)

    starts = [asyncio.Event() for _ in CHILDREN]
    watches = [
        asyncio.create_task(follow(child, resource, started))
        for (child, resource), started in zip(CHILDREN.items(), starts, strict=True)
    ]
    for started in starts:
        await started.wait()
    try:
        yield complete
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
