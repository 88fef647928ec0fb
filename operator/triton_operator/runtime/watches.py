"""Watches: each lists the objects of a kind into the store, then follows changes in a separate thread.

A watch that ended goes on from the last version it saw, so no change is lost. Everything is listed again only if the
API server has forgotten that version, or after a bug, which ends no watch: what one object causes must not keep the
changes of all others away.

A version that is older than one that was seen is of another history: etcd was put back to a copy. So is a list that
lacks a change which was seen, and is not newer than the list: versions may have been raised with the copy. What the
process knows is then of a cluster that is no more, so the process ends, and the next one lists everything.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

from triton_operator.kube.cluster import PAGE, Cluster
from triton_operator.kube.errors import ClusterError, GoneError
from triton_operator.kube.kinds import ApiKind
from triton_operator.runtime.store import Key, OtherHistoryError, Store

LONGEST_BACKOFF_SECONDS = 5.0
"""The longest pause, and so the longest wait after an outage of the API server."""
LEAST_SECONDS = 1.0
"""The shortest time between the starts of two watches, if the first ended in order."""

log = logging.getLogger(__name__)


def end_process(message: str) -> None:
    """End the process at once, whatever it is about to write."""
    log.critical(message)
    logging.shutdown()
    os._exit(1)


def backoffs() -> Iterator[float]:
    """Yield the pauses in seconds between tries of a list or a watch, without an end."""
    return chain((1.0, 1.0, 2.0, 3.0), repeat(LONGEST_BACKOFF_SECONDS))


class Watch:
    """The watch of a kind in a namespace (None: in all)."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        kind: ApiKind,
        namespace: str | None,
        wake: Callable[[Key], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`wake` gets the TritonDeployment of each change, and `failed` each bug, in the watch's thread."""
        self.kind = kind
        self.namespace = namespace
        self._cluster = cluster
        self._store = store
        self._wake = wake
        self._failed = failed
        self._version: str | None = None
        """The store has every change up to this version; None: list everything first."""
        self._newest = 0
        """The newest version that was seen."""
        self._pauses = backoffs()
        self._pauses_after_bugs = backoffs()
        """The pauses grow until a watch ends without a bug: that a change is heard does not say that it is over."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {kind.plural}", daemon=True)

    def list(self) -> set[Key]:
        """Take in everything. Return the TritonDeployments with something new. Raises ClusterError."""
        bodies, version = self._listed()
        try:
            changed = self._store.replace(self.kind, self.namespace, bodies, version)
        except OtherHistoryError as error:
            self._end(str(error))
            raise
        self._version = version
        return changed

    def follow(self) -> float:
        """Take in changes until the watch ends. Return the seconds to wait before the next watch."""
        began = time.monotonic()
        try:
            self._take_in_changes()
        except ClusterError as error:
            return self._interrupted(error)
        except Exception as error:
            # What it has taken in is not known.
            self._version = None
            pause = next(self._pauses_after_bugs)
            log.exception("the watch of %s met a bug and lists everything in %g s", self.kind.plural, pause)
            self._failed(error)
            return pause
        self._pauses_after_bugs = backoffs()
        return max(0.0, began + LEAST_SECONDS - time.monotonic())

    def start(self) -> None:
        """Start to follow, unless it does already."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Wake nobody any more. The thread ends with the API server's next event, or with the process."""
        self._stopped.set()

    def ended(self) -> bool:
        """Whether the watch was started and no longer follows, which should never happen."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def _take_in_changes(self) -> None:
        """Take in everything if no version is known, then each change until the watch ends. Raises ClusterError."""
        if self._version is None:
            for changed in self.list():
                self._wake(changed)
        else:
            # A watch from a version that is yet to come would be silent. Before etcd is put back, all watches end.
            self._listed(page=1)
        for event_type, body in self._cluster.watch(self.kind, self.namespace, self._version or ""):
            if self._stopped.is_set():
                return
            for key in () if event_type == "BOOKMARK" else self._store.seen(self.kind, event_type, body):
                self._wake(key)
            self._version = body["metadata"]["resourceVersion"]
            self._newest = max(self._newest, int(self._version or 0))
            self._pauses = backoffs()

    def _listed(self, page: int = PAGE) -> tuple[Iterator[dict[str, Any]], str]:
        """Return a list and its version. It ends the process if that, which etcd gave, is older than was seen before.

        The watch's own thread may see a newer version while the list is on its way.
        """
        newest = self._newest
        bodies, version = self._cluster.list_all(self.kind, self.namespace, page)
        if int(version) < newest:
            self._end(f"has version {version}, and version {newest} was seen before")
        self._newest = max(self._newest, int(version))
        return bodies, version

    def _end(self, why: str) -> None:
        """End the process, because the list is of another history. ``why``: goes on from the words for the list."""
        end_process(
            f"the list of {self.kind.plural} {why}: etcd was put back to an older copy, so this process ends, and the"
            " next one lists everything anew"
        )

    def _interrupted(self, error: ClusterError) -> float:
        """Return the pause after a watch that the API server, or the way to it, ended."""
        if isinstance(error, GoneError):
            self._version = None
        pause = next(self._pauses)
        log.info("the watch of %s ended and starts again in %g s: %s", self.kind.plural, pause, error)
        return pause

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._stopped.wait(self.follow())
