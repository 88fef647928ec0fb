"""What runs between watch events and passes: the store, the work queue, the threads and the comparison with full lists.

Everything that must live as long as the process lives here; handlers.py only forwards what kopf sees.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from triton_operator.cluster import Cluster, ClusterError
from triton_operator.kinds import ALL, Kind
from triton_operator.metrics import Metrics
from triton_operator.queue import WorkQueue
from triton_operator.reconcile import Reconciler
from triton_operator.settings import Settings
from triton_operator.store import Key, Store

WORKERS = 8
"""Passes at a time: a pass waits for the API server most of its time."""
FULL_LIST_SECONDS = 300.0
"""Between two full lists, which find what an interrupted watch did not say: that an object is gone."""
LONGEST_PASS_SECONDS = 300.0
"""A pass is a dozen requests of at most 35 s each; one that runs longer hangs."""

log = logging.getLogger(__name__)


class Controller:
    """The operator without its watches."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._store = Store()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="pass")
        self._queue: WorkQueue[Key] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        metrics.watch(self._store)

    async def start(self) -> None:
        """Connect, learn what there is, and start to work. Raises ClusterError; may then be called again.

        No pass runs before every kind was listed: it would take what it has not seen for missing.
        """
        self._loop = asyncio.get_running_loop()
        cluster = await self._in_thread(Cluster.connect)
        reconciler = Reconciler(cluster, self._store, self._settings, self._metrics)
        queue: WorkQueue[Key] = WorkQueue(lambda key: self._in_thread(reconciler.reconcile, key), WORKERS)
        for key in await self._list_everything(cluster):
            queue.wake(key)
        self._queue = queue
        self._metrics.queue_depth.set_function(lambda: len(queue))
        self._tasks = [asyncio.create_task(queue.run()), asyncio.create_task(self._list_forever(cluster, queue))]
        log.info("working on %d TritonDeployments", len(self._store.ready_reasons()))

    async def stop(self) -> None:
        """Start no new pass and let the running ones end: each is idempotent, but a whole one is better than half."""
        for task in self._tasks:
            task.cancel()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    def seen(self, kind: Kind, event_type: str | None, body: dict[str, Any]) -> None:
        """Take in a watch event (type None: from a list) and wake the TritonDeployment it concerns."""
        key = self._store.remove(kind, body) if event_type == "DELETED" else self._store.put(kind, body)
        if key is not None and self._queue is not None:
            self._queue.wake(key)

    def not_alive(self) -> str:
        """Why the kubelet should restart the process; empty: it need not. Called from another thread."""
        if self._loop is None or self._queue is None:
            return ""
        if any(task.done() for task in self._tasks):
            return "the work queue ended"
        answer = asyncio.run_coroutine_threadsafe(self._longest_pass(), self._loop)
        try:
            seconds = answer.result(timeout=5)
        except TimeoutError:
            return "the event loop does not answer within 5 s"
        return f"a pass has run for {seconds:.0f} s" if seconds > LONGEST_PASS_SECONDS else ""

    def not_ready(self) -> str:
        """Why the operator does no work yet; empty: it does."""
        return "" if self._queue is not None else "the API server's objects are not listed yet"

    async def _longest_pass(self) -> float:
        return 0.0 if self._queue is None else self._queue.oldest_pass_seconds()

    async def _list_forever(self, cluster: Cluster, queue: WorkQueue[Key]) -> None:
        while True:
            await asyncio.sleep(FULL_LIST_SECONDS)
            try:
                for key in await self._list_everything(cluster):
                    queue.wake(key)
            except ClusterError as error:
                log.warning("full lists, again in %g s: %s", FULL_LIST_SECONDS, error)

    async def _list_everything(self, cluster: Cluster) -> set[Key]:
        """List every kind; the TritonDeployments that something new was found of."""
        changed: set[Key] = set()
        for namespace in self._settings.namespaces or (None,):
            for kind in ALL:
                changed |= await self._in_thread(self._list, cluster, kind, namespace)
        return changed

    def _list(self, cluster: Cluster, kind: Kind, namespace: str | None) -> set[Key]:
        return self._store.replace(kind, namespace, *cluster.list_all(kind, namespace))

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
