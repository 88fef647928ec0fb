"""What surrounds the passes: the store, the queue, the threads, watches, full lists and the Lease.

Every replica watches. Only the one that holds the Lease makes passes; the others stand by with a filled store. This
module keeps everything that lives as long as the process; handlers.py only starts and stops it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

from triton_operator.kube.cluster import Cluster
from triton_operator.kube.errors import ClusterError, NotFoundError, RefusedError
from triton_operator.kube.kinds import ALL, EVENT, HTTP_ROUTE, OPTIONAL, SCALED_OBJECT, ApiKind
from triton_operator.runtime.lease import LEASE_SECONDS, RENEW_SECONDS, Lease
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result, WorkQueue
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store
from triton_operator.runtime.turns import Turns
from triton_operator.runtime.watches import Watch
from triton_operator.settings import Settings

WORKERS = 8
"""How many passes run at a time. A pass spends most of its time waiting for the API server."""
FULL_LIST_SECONDS = 300.0
"""The pause between two full lists, in seconds. They find deletions that an interrupted watch missed, which is rare,
and each costs the API server as much as a start."""
UNLISTED_AGAIN_SECONDS = 10.0
"""The pause, in seconds, before a namespace that could not be listed is tried again: whoever makes it again waits."""
LONGEST_PASS_SECONDS = 300.0
"""How long a pass may run, in seconds: it is a dozen requests, most of which take milliseconds and none more than 35 s,
so one that runs longer hangs."""

log = logging.getLogger(__name__)


class Controller:
    """The operator, apart from the life of its process, which is kopf's."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._store = Store(metrics.failed)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="pass")
        self._queue: WorkQueue[Key] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._watches: list[Watch] = []
        self._unlisted: dict[str | None, str] = dict.fromkeys(settings.namespaces or (None,), "")
        """Why a namespace could not be listed; no pass is made there."""
        self._lease: Lease | None = None
        # A separate thread, because a renewal must not wait for passes.
        self._lease_thread = ThreadPoolExecutor(1, thread_name_prefix="lease")
        self._leads = settings.lease is None
        self._listed_at = float("-inf")
        metrics.watch(self._store)
        metrics.leads.set_function(lambda: self._leads)

    async def start(self) -> None:
        """Connect, list every kind, and start to work. Raises ClusterError, and may then be called again.

        No pass runs before every kind was listed, because it would take what it has not seen for missing.
        """
        self._loop = asyncio.get_running_loop()
        cluster = await self._in_thread(Cluster.connect, self._settings.holder)
        optional = [kind for kind in self._allowed() if await self._in_thread(cluster.serves, kind)]
        queue = self._make_queue(cluster, optional)
        self._watches = list(self._make_watches(cluster, (*ALL, *optional), queue))
        for key in await self._list_everything():
            queue.wake(key)
        self._begin(queue)
        log.info("%d TritonDeployments are known", len(self._store.ready_reasons()))

    def _make_queue(self, cluster: Cluster, optional: Collection[ApiKind]) -> WorkQueue[Key]:
        """The queue of passes, which write only while this replica holds the Lease, if there is one."""
        if self._settings.lease is not None:
            self._lease = Lease(cluster, *self._settings.lease, self._settings.holder)
            cluster = cluster.guarded(self._lease.held)
        loop = asyncio.get_running_loop()

        def wake(key: tuple[str, str]) -> None:
            loop.call_soon_threadsafe(queue.wake, Key(*key))

        turns = Turns(wake)
        reconciler = Reconciler(cluster, self._store, self._settings, self._metrics, optional=optional, turns=turns)

        async def process(key: Key) -> Result:
            # A replica that stands by drops the key; taking over wakes all of them.
            may_work = self._leads and key.namespace not in self._unlisted
            return await self._in_thread(reconciler.reconcile, key) if may_work else Result()

        queue = WorkQueue(process, WORKERS)
        return queue

    def _make_watches(self, cluster: Cluster, kinds: Iterable[ApiKind], queue: WorkQueue[Key]) -> Iterator[Watch]:
        """Yield the watches, which wake keys from their own threads."""
        loop = asyncio.get_running_loop()

        def wake(key: Key) -> None:
            loop.call_soon_threadsafe(queue.wake, key)

        for namespace, kind in product(self._settings.namespaces or (None,), kinds):
            yield Watch(cluster, self._store, kind, namespace, wake, self._metrics.failed)

    def _begin(self, queue: WorkQueue[Key]) -> None:
        """Work, follow the watches, and tell of the queue."""
        self._queue = queue
        self._metrics.queue_depth.set_function(lambda: len(queue))
        self._metrics.queue_age.set_function(queue.oldest_wait_seconds)
        work = [queue.run(), self._list_forever(queue)]
        if self._lease is not None:
            work.append(self._hold_forever(self._lease, queue))
        self._tasks = [asyncio.create_task(each) for each in work]
        for task in self._tasks:
            task.add_done_callback(_log_end)

    async def stop(self) -> None:
        """Start no new pass, let the running ones end, then release the Lease.

        A pass could be cut short, because it is idempotent, but a whole one is better.
        """
        for task in self._tasks:
            task.cancel()
        for watch in self._watches:
            watch.stop()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        if self._lease is not None:
            # The same thread, so that the release comes after a running renewal.
            await asyncio.get_running_loop().run_in_executor(self._lease_thread, self._lease.release)

    def not_alive(self) -> str:
        """Why the kubelet should restart the process; empty: it should not. Called from another thread."""
        if self._loop is None or self._queue is None:
            return ""
        if any(task.done() for task in self._tasks):
            return "the work queue ended"
        if ended := [watch.kind.plural for watch in self._watches if watch.ended()]:
            return f"the watch of {', '.join(ended)} ended"
        answer = asyncio.run_coroutine_threadsafe(self._longest_pass(), self._loop)
        try:
            seconds = answer.result(timeout=5)
        except TimeoutError:
            return "the event loop does not answer within 5 s"
        return f"a pass has run for {seconds:.0f} s" if seconds > LONGEST_PASS_SECONDS else ""

    def not_ready(self) -> str:
        """Why the operator does not work yet; empty: it works."""
        return "" if self._queue is not None else "the API server's objects are not listed yet"

    def unlisted(self) -> str:
        """Which namespaces are left out, and why; empty: none is."""
        return "; ".join(f"namespace {each} is left out: {why}" for each, why in self._unlisted.items() if why)

    def _allowed(self) -> Iterator[ApiKind]:
        """Yield the kinds of other projects that the installation lets the operator use."""
        if self._settings.prometheus_address:
            yield SCALED_OBJECT
        if self._settings.gateway_api:
            yield HTTP_ROUTE

    async def _longest_pass(self) -> float:
        return 0.0 if self._queue is None else self._queue.oldest_pass_seconds()

    async def _list_forever(self, queue: WorkQueue[Key]) -> None:
        pause = min(UNLISTED_AGAIN_SECONDS, FULL_LIST_SECONDS)
        while True:
            await asyncio.sleep(pause)
            is_due = asyncio.get_running_loop().time() - self._listed_at >= FULL_LIST_SECONDS
            if is_due or self._unlisted:
                only = () if is_due else tuple(self._unlisted)
                for key in await self._try_to_list(pause, only) or ():
                    queue.wake(key)

    async def _hold_forever(self, lease: Lease, queue: WorkQueue[Key]) -> None:
        taking_over: asyncio.Task[None] | None = None
        # Full lists run as a task, so the Lease is renewed however long they take.
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.get_running_loop().run_in_executor(self._lease_thread, lease.renew)
                if not lease.held():
                    self._leads = False
                    self._metrics.stand_by()
                elif not self._leads and (taking_over is None or taking_over.done()):
                    taking_over = group.create_task(self._take_over(lease, queue))
                await asyncio.sleep(RENEW_SECONDS)

    async def _take_over(self, lease: Lease, queue: WorkQueue[Key]) -> None:
        """List everything if the last list is old, then wake every key: a standby does not notice silent watches."""
        is_old = asyncio.get_running_loop().time() - self._listed_at > LEASE_SECONDS
        if is_old and await self._try_to_list(RENEW_SECONDS) is None:
            return
        self._leads = lease.held()
        keys = self._store.keys()
        log.info("this replica leads and works on %d TritonDeployments", len(keys))
        for key in keys:
            queue.wake(key)

    async def _try_to_list(self, again: float, only: Collection[str | None] = ()) -> set[Key] | None:
        """List every kind and return what is new; None: that failed, and the caller tries again in `again` seconds."""
        try:
            return await self._list_everything(only)
        except ClusterError as error:
            log.warning("the full lists failed; trying again in %g s: %s", again, error)
        except Exception as error:
            log.exception("the full lists failed because of a bug; trying again in %g s", again)
            self._metrics.failed(error)
        return None

    async def _list_everything(self, only: Collection[str | None] = ()) -> set[Key]:
        """List every kind in every namespace, or in these alone. Return the TritonDeployments with something new.

        A namespace that is gone, or in which the operator may not list, stops no other. Raises ClusterError if no
        namespace can be listed.
        """
        changed, errors = set[Key](), dict[str | None, ClusterError]()
        for namespace in only or self._settings.namespaces or (None,):
            try:
                changed |= await self._list_namespace(namespace)
            except ClusterError as error:
                errors[namespace] = error
        if len(errors) == len(self._settings.namespaces or (None,)):
            raise next(iter(errors.values()))
        for namespace, cause in errors.items():
            self._leave_out(namespace, cause)
        if not only:
            self._listed_at = asyncio.get_running_loop().time()
        return changed

    async def _list_namespace(self, namespace: str | None) -> set[Key]:
        """List every kind in a namespace (None: in all). Return the TritonDeployments with something new."""
        changed: set[Key] = set()
        watches = [each for each in self._watches if each.namespace == namespace]
        for watch in watches:
            try:
                changed |= await self._in_thread(watch.list)
            except ClusterError as error:
                # Events only explain, and are often in an etcd of their own. Another project's kind may be uninstalled,
                # or its webhook down, while the operator runs. Neither may keep a replica from leading, and their
                # watches list them later.
                if watch.kind not in (EVENT, *OPTIONAL):
                    raise
                self._metrics.failed(error)
                log.warning("%s cannot be listed, and are left out until they can: %s", watch.kind.plural, error)
        if self._unlisted.pop(namespace, None) is not None:
            for watch in watches:
                watch.start()
            keys = self._store.keys()
            changed.update(key for key in keys if namespace in (None, key.namespace))
        return changed

    def _leave_out(self, namespace: str | None, error: ClusterError) -> None:
        """Make no passes in a namespace until it can be listed, if what is known of it is nothing, or past."""
        self._metrics.failed(error)
        if namespace not in self._unlisted and not isinstance(error, RefusedError | NotFoundError):
            return
        if self._unlisted.get(namespace) != str(error):
            log.warning("namespace %s cannot be listed, so nothing is done there until it can: %s", namespace, error)
        self._unlisted[namespace] = str(error)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


def _log_end(task: asyncio.Task[None]) -> None:
    """Log the bug that ended what should run as long as the process; `not_alive` then has the kubelet restart it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s ended because of a bug", task.get_coro(), exc_info=error)
