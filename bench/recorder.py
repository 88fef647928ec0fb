"""Records when objects of a namespace were first seen in a state, with one watch for each kind."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from kubernetes import client, config, dynamic

WATCH_SECONDS = 1800

Resource = dict[str, Any]


class Recorder:
    """Every version of every object of some kinds, with the moment (time.monotonic) at which it was received."""

    def __init__(self, kubeconfig: str, namespace: str, kinds: dict[str, str]) -> None:
        """Watch ``kinds``, a map from kind to apiVersion, from now on; the watches end with the process."""
        self.namespace = namespace
        self._seen: dict[str, list[tuple[float, Resource]]] = {kind: [] for kind in kinds}
        self._news = threading.Condition()
        self._api: client.ApiClient = config.new_client_from_config(kubeconfig)
        resources = dynamic.DynamicClient(self._api).resources
        for kind, version in kinds.items():
            resource = resources.get(api_version=version, kind=kind)
            threading.Thread(target=self._follow, args=(kind, resource), daemon=True).start()

    def _follow(self, kind: str, resource: Any) -> None:
        for event in resource.watch(namespace=self.namespace, timeout=WATCH_SECONDS):
            now = time.monotonic()
            with self._news:
                self._seen[kind].append((now, event["raw_object"]))
                self._news.notify_all()

    def versions(self, kind: str) -> list[tuple[float, Resource]]:
        """Return the received versions of one kind, in order."""
        with self._news:
            return list(self._seen[kind])

    def first(self, kind: str, holds: Callable[[Resource], bool]) -> dict[str, float]:
        """Return when a version that ``holds`` was first received, by object name."""
        found: dict[str, float] = {}
        for moment, resource in self.versions(kind):
            if holds(resource):
                found.setdefault(resource["metadata"]["name"], moment)
        return found

    def last(self, kind: str) -> Iterator[Resource]:
        """Return the last version received of each object."""
        yield from {resource["metadata"]["name"]: resource for _, resource in self.versions(kind)}.values()

    def wait(self, done: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait until ``done``, asked after each event. Raises TimeoutError after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not done():
            with self._news:
                if not self._news.wait(max(0.0, min(1.0, deadline - time.monotonic()))) and time.monotonic() > deadline:
                    raise TimeoutError(f"{what} did not happen within {seconds:g} s")
