"""The queue between the watch events (handlers.py) and the passes (reconcile.py): when each object is reconciled.

`Schedule` decides, without a clock or a thread; `WorkQueue` runs it on the event loop.
"""

import asyncio
import heapq
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

FIRST_BACKOFF_SECONDS = 0.5
"""The pause after a first failure, in seconds: a conflict is over as soon as a watch has told of the other's change."""
LONGEST_BACKOFF_SECONDS = 30.0
"""The longest pause after a failure, in seconds, and so the longest wait after an outage of the API server."""


@dataclass(frozen=True)
class Result:
    """How the work on a key ended."""

    again_after: float | None = None
    """Seconds until the key is due again. 0: as soon as nothing else is due. None: not before it is woken."""
    failed: bool = False
    """Whether the key is due again after a pause of at least `again_after` that doubles with each failure."""


class Schedule(Generic[K]):
    """Keys that are due, waiting or being worked on. Times are seconds of any monotonic clock.

    One worker at a time works on a key. A key that is woken many times while it waits is worked on once; a key that is
    woken while it is worked on, once more. Due keys come out in the order in which they became due. Keys that only have
    to finish what they began come after all woken keys, so that each of many new keys is begun.
    """

    def __init__(self) -> None:
        # Each key with the time at which it became due.
        self._due: OrderedDict[K, float] = OrderedDict()
        self._finishing: OrderedDict[K, float] = OrderedDict()
        self._working: dict[K, float] = {}
        self._woken: set[K] = set()
        self._timers: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._due) + len(self._finishing)

    @property
    def working(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    def wake(self, key: K, now: float) -> None:
        """Make a key due now, whatever it waited for."""
        self._timers.pop(key, None)
        if key in self._working:
            self._woken.add(key)
        else:
            self._finishing.pop(key, None)
            self._due.setdefault(key, now)

    def take(self, now: float) -> K | None:
        """Return the key that has been due for longest and mark it as worked on; None if none is due."""
        while self._heap and self._heap[0][0] <= now:
            time, _, key = heapq.heappop(self._heap)
            if self._timers.get(key) == time:
                self.wake(key, time)
        first = self._due or self._finishing
        if not first:
            return None
        key, _ = first.popitem(last=False)
        self._working[key] = now
        return key

    def succeeded(self, key: K, now: float, again_after: float | None) -> None:
        """The work on a key ended; it is due again after so many seconds, or only when woken."""
        self._failures.pop(key, None)
        if again_after == 0.0 and key not in self._woken:
            del self._working[key]
            self._finishing[key] = now
        else:
            self._ended(key, now, None if again_after is None else now + again_after)

    def failed(self, key: K, now: float, at_least: float = 0.0) -> float:
        """The work on a key failed: it is due again after a pause that doubles each time. Returns the pause."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is bounded before the power is taken: 2.0 ** 1100 overflows.
        pause = max(at_least, min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures, 30), LONGEST_BACKOFF_SECONDS))
        self._ended(key, now, now + pause)
        return pause

    def next_time(self) -> float | None:
        """When the next waiting key becomes due; None if none waits."""
        while self._heap and self._timers.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def oldest_start(self) -> float | None:
        """When the longest running work began; None if nothing is worked on."""
        return min(self._working.values(), default=None)

    def oldest_due(self) -> float | None:
        """When the key that has been due for longest became due; None if none is due. Any thread may ask."""
        return min([*self._due.values(), *self._finishing.values()], default=None)

    def _ended(self, key: K, now: float, due: float | None) -> None:
        del self._working[key]
        if key in self._woken:
            self._woken.remove(key)
            self.wake(key, now)
        elif due is not None:
            self._timers[key] = due
            self._sequence += 1
            heapq.heappush(self._heap, (due, self._sequence, key))
            if len(self._heap) > 2 * len(self._timers):
                self._forget_old_timers()

    def _forget_old_timers(self) -> None:
        """Drop what keys no longer wait for: a far timer would keep all that were woken before it in memory."""
        kept = {key: (due, number, key) for due, number, key in self._heap if self._timers.get(key) == due}
        self._heap = list(kept.values())
        heapq.heapify(self._heap)


class WorkQueue(Generic[K]):
    """Runs `process` for every key that is due, on at most `workers` keys at a time.

    If `process` raises, the traceback is logged and the key comes back as after a failure. All methods belong to the
    event loop's thread, unless they say otherwise.
    """

    def __init__(self, process: Callable[[K], Awaitable[Result]], workers: int) -> None:
        self._process = process
        self._workers = workers
        self._schedule: Schedule[K] = Schedule()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._schedule)

    def wake(self, key: K) -> None:
        """Make a key due now."""
        self._schedule.wake(key, asyncio.get_running_loop().time())
        self._changed.set()

    def oldest_wait_seconds(self) -> float:
        """How long the key that has waited longest for a worker has been due; 0 if none waits. Any thread may ask."""
        due = self._schedule.oldest_due()
        return 0.0 if due is None else max(0.0, time.monotonic() - due)

    def oldest_pass_seconds(self) -> float:
        """How long the longest running `process` has run; 0 if none runs."""
        start = self._schedule.oldest_start()
        return 0.0 if start is None else asyncio.get_running_loop().time() - start

    async def run(self) -> None:
        """Work until cancelled; a `process` that is running is then cancelled too."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                while self._schedule.working < self._workers and (key := self._schedule.take(loop.time())) is not None:
                    group.create_task(self._work(key))
                next_time = self._schedule.next_time() if self._schedule.working < self._workers else None
                pause = None if next_time is None else max(0.0, next_time - loop.time())
                try:
                    await asyncio.wait_for(self._changed.wait(), pause)
                except TimeoutError:
                    continue

    async def _work(self, key: K) -> None:
        loop = asyncio.get_running_loop()
        try:
            result = await self._process(key)
        except Exception:
            log.exception("%s: the pass raised an exception, which is a bug", key)
            result = Result(failed=True)
        if result.failed:
            self._schedule.failed(key, loop.time(), result.again_after or 0.0)
        else:
            self._schedule.succeeded(key, loop.time(), result.again_after)
        self._changed.set()
