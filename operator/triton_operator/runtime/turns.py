"""Turns: which object may start a Job that measures, so that no two disturb each other's figures.

All is decided from the Jobs in the store and from which objects wait, which each of their passes says anew. So a
replica that takes over, or a process that starts, needs nothing but its first passes.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from triton_operator import names
from triton_operator.names import Body
from triton_operator.observed.snapshot import Observed
from triton_operator.observed.turn import Measurement, Turn
from triton_operator.resources.job import REQUIRED
from triton_operator.resources.room import requested

AGAIN_SECONDS = 5.0
"""The pause, in seconds, before the first in the queue asks again; the others wait so much longer for each place. It is
what a measurement of 20 s may cost between two turns."""
LONGEST_PAUSE_SECONDS = 300.0
"""The longest pause between two passes of an object in the queue, so that a thousand of them make three a second."""
GRACE_SECONDS = 60.0
"""Seconds after that pause, after which an object that has not asked has left the queue: its passes fail."""
HELD_UP_SECONDS = 30.0
"""Seconds for which a Job that does not begin keeps its place from others that wait. A scheduler with room for a pod
needs less than one; what takes longer may take for ever."""

Key = tuple[str, str]
"""Namespace and name of a TritonDeployment."""
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Wish:
    """A Job that an object would start."""

    stage: str
    nodes: frozenset[str]
    """The nodes of the servers that it measures; empty: it brings its own."""
    is_urgent: bool
    """Whether servers have made room for what it measures, and answer less, or nothing, until it has ended."""
    pod: str = ""
    """A digest of all that says which nodes may have its pod."""

    def is_like(self, other: "Wish") -> bool:
        """Whether the same nodes keep both waiting."""
        return (self.nodes, self.pod) == (other.nodes, other.pod)


def wish_for(job: Body, observed: Observed) -> Wish:
    """Return the wish to start a Job.

    It needs its servers' nodes to itself if it measures these, or if its claim is attached to the node of the object's
    pods.
    """
    pod = job["spec"]["template"]["spec"]
    affinity = pod.get("affinity", {}).get("podAffinity", {})
    stage = job["metadata"]["labels"][names.STAGE_LABEL]
    is_bound = stage == "measure" or REQUIRED in affinity
    servers = observed.servers.values()
    nodes = frozenset[str]().union(*(each.nodes for each in servers)) if is_bound else frozenset[str]()
    where = names.digest([pod.get("nodeSelector"), pod.get("tolerations"), list(requested(pod))], 16)
    return Wish(stage, nodes, any(each.makes_way_for for each in servers), where)


@dataclass(frozen=True)
class _Waiting:
    """An object in the queue."""

    wish: Wish
    since: datetime
    until: datetime
    """When it has left the queue, unless it asks again."""
    obstacle: str = ""
    """What it waits for; empty: for those before it in the queue."""
    kept_by: frozenset[str] | None = None
    """The nodes that measured when no other one was known to take it; None: it waits for something else."""


@dataclass
class Turns:
    """The queue of an installation. Passes ask from several threads, hence the lock."""

    wake: Callable[[Key], None] = lambda key: None
    """Gets the object whose turn it may be; without it, that finds out within `AGAIN_SECONDS`."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: dict[Key, _Waiting] = field(default_factory=dict)
    _last: dict[str, datetime] = field(default_factory=dict)
    """When an object of each namespace last had its turn."""
    _granted: set[Key] = field(default_factory=set)
    """The objects whose pass is about to start a Job that is not in the store yet."""
    _begun: set[Key] = field(default_factory=set)
    """The objects that had their turn, and measure for all that is known."""
    _held_up: dict[Key, tuple[str, datetime]] = field(default_factory=dict)
    """The Job of an object that does not begin, and since when."""

    def ask(
        self,
        key: Key,
        wish: Wish,
        now: datetime,
        most: int,
        measuring: Callable[[], Collection[Measurement]],
        has_other_node: Callable[[frozenset[str]], bool | None],
    ) -> Turn:
        """Return the turn of an object that would start a Job. If it may, it has the place until `passed`.

        ``most``: Jobs that may measure on a node. ``has_other_node``: whether the Job may run on another node than
        these; None: nodes are not known.
        """
        with self._lock:
            self._held_up.pop(key, None)
            known = self._queue.get(key)
            since = known.since if known is not None else now
            self._queue[key] = _Waiting(wish, since, now + timedelta(seconds=LONGEST_PAUSE_SECONDS))
            self._queue = {each: waiting for each, waiting in self._queue.items() if waiting.until > now}
            order = sorted(self._queue, key=self._precedence)
            place = order.index(key) + 1
            running = [each for each in measuring() if each.owner != key]
            owners = {each.owner for each in running}
            running += [Measurement(each, frozenset(), False) for each in self._granted - owners - {key}]
            taken = _taken(running, most)
            before = [self._queue[each] for each in order[: place - 1]]
            is_next = all(each.kept_by is not None and each.kept_by <= taken for each in before)
            like = next((each.obstacle for each in before if each.wish.is_like(wish)), "")
            obstacle = like or _obstacle(running, wish, most, taken, has_other_node) if is_next else ""
            if is_next and not obstacle:
                self._granted.add(key)
                self._begin(key, now)
                return Turn(taken=taken)
            pause = min(AGAIN_SECONDS * place, LONGEST_PAUSE_SECONDS)
            until = now + timedelta(seconds=pause + GRACE_SECONDS)
            is_placed = all(each.is_placed for each in running)
            self._queue[key] = _Waiting(wish, since, until, obstacle, taken if is_next and is_placed else None)
            obstacle = obstacle or "others of the installation have their turn before it"
            words = f"waits for its turn to be measured, place {place} of {len(order)}: {obstacle}"
            return Turn(words, pause)

    def hold(self, key: Key, job: str, now: datetime, *, keeps_off: bool) -> Turn:
        """Return the turn of an object whose Job does not begin to measure: it gives its place to one that waits.

        ``keeps_off``: whether the Job has to keep off nodes, which may be free by now.
        """
        with self._lock:
            self._queue.pop(key, None)
            known = self._held_up.get(key)
            since = known[1] if known is not None and known[0] == job else now
            self._held_up[key] = (job, since)
            waits = any(waiting.until > now for waiting in self._queue.values()) or keeps_off
            if not waits or (now - since).total_seconds() < HELD_UP_SECONDS:
                return Turn(again_after=HELD_UP_SECONDS)
            del self._held_up[key]
            self._last[key[0]] = now
            words = f"gave its turn to be measured to another object, because Job {job} did not begin; it queues again"
            return Turn(words, AGAIN_SECONDS, withdrawn=job)

    def passed(self, key: Key, measuring: Callable[[], Collection[Measurement]]) -> None:
        """The object's pass is over: what it started is in the store. If its Job has ended, the next one is woken."""
        self._granted.discard(key)
        if key not in self._begun:
            return
        with self._lock:
            if any(each.owner == key for each in measuring()):
                return
            self._begun.discard(key)
            first = min(self._queue, key=self._precedence, default=None)
        if first is not None:
            self.wake(first)

    def leave(self, key: Key) -> None:
        """The object has nothing to measure."""
        with self._lock:
            self._queue.pop(key, None)
            self._held_up.pop(key, None)

    def _begin(self, key: Key, now: datetime) -> None:
        del self._queue[key]
        self._last[key[0]] = now
        self._begun.add(key)

    def _precedence(self, key: Key) -> tuple[bool, datetime, bool, datetime, Key]:
        """Return what sorts the queue: namespaces in turn; in one, what is to serve first, then who came first."""
        waiting = self._queue[key]
        last = self._last.get(key[0], _NEVER)
        return not waiting.wish.is_urgent, last, waiting.wish.stage != "measure", waiting.since, key


def _taken(running: Collection[Measurement], most: int) -> frozenset[str]:
    """Return the nodes on which as many Jobs measure as may."""
    counts = Counter(node for each in running for node in each.nodes)
    return frozenset(node for node, count in counts.items() if count >= most)


def _obstacle(
    running: Collection[Measurement],
    wish: Wish,
    most: int,
    taken: frozenset[str],
    has_other_node: Callable[[frozenset[str]], bool | None],
) -> str:
    """Return what an object waits for if none before it in the queue is to start; empty: nothing."""
    if len(running) < most:
        return ""
    unplaced = [each for each in running if not each.is_placed]
    on_servers = [each for each in running if each.nodes & taken & wish.nodes]
    if unplaced:
        return f"{unplaced[0]} is about to be measured"
    if on_servers:
        return f"{on_servers[0]} is measured"
    has_other = has_other_node(taken)
    if has_other is None or not (has_other or wish.nodes):
        others = f" and {len(running) - 1} more" if len(running) > 1 else ""
        return f"{min(map(str, running))}{others} is measured, and no other node is known to take it"
    return ""
