"""kopf, and nothing else of it than watches: no finalizer, no annotation, no progress in the object.

kopf's author calls the stateless `on.event` handlers the ones for level-triggered operators; daemons, timers and
change handlers write to the object or block its deletion while the operator is down.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import kopf
from kopf._cogs.structs.bodies import RawBody
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory

from triton_operator.cluster import ClusterError
from triton_operator.controller import Controller
from triton_operator.kinds import ALL, Kind

START_AGAIN_SECONDS = 2.0
LONGEST_WATCH_BACKOFF_SECONDS = 5.0
"""How long after an outage of the API server a watch may still wait."""


def registry(controller: Controller) -> kopf.OperatorRegistry:
    """The handlers that feed a controller."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        try:
            await controller.start()
        except ClusterError as error:
            # No CRD yet, or no API server.
            raise kopf.TemporaryError(str(error), delay=START_AGAIN_SECONDS) from error

    @kopf.on.cleanup(registry=handlers)
    async def stop(**_: Any) -> None:
        await controller.stop()

    @kopf.on.login(registry=handlers)
    def login(**arguments: Any) -> kopf.ConnectionInfo | None:
        # Named here, or kopf would read the kubernetes client's private configuration, whose layout changes.
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)

    for kind in ALL:
        _watch(handlers, kind, controller)
    return handlers


def _watch(handlers: kopf.OperatorRegistry, kind: Kind, controller: Controller) -> None:
    @kopf.on.event(kind.group, kind.version, kind.plural, registry=handlers, id=f"{kind.plural}-seen")
    async def seen(event: Any, **_: Any) -> None:
        controller.seen(kind, event["type"], event["object"])


def configure(settings: kopf.OperatorSettings) -> None:
    """Set what is not kopf's default, each with its reason."""
    for kind in ALL:
        if kind.labels:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.labels
        if kind.fields:
            settings.watching.field_selectors[kind.group, kind.version, kind.plural] = kind.fields
    # Lists in pages: a cluster with many children costs no spike of memory.
    settings.watching.chunk_size = 100
    # The API server would end watches at random times of up to an hour; an even pace shows errors early.
    settings.watching.server_timeout = 600
    settings.watching.connect_timeout = 10
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 30
    # kopf would give up after 54 s of errors 5xx, and end the process.
    settings.networking.error_backoffs = Backoffs()
    # Namespaces and CRDs are not watched: that would need rules for the whole cluster.
    settings.scanning.disabled = True
    # Every replica watches; which one works is lease.py's. kopf's peers would both stop where both have one priority.
    settings.peering.standalone = True
    # Events are posted by reconcile.py, on transitions; never copies of log lines.
    settings.posting.enabled = False
    # A worker of kopf does nothing but copy an object into the store; it need not linger for the next event.
    settings.queueing.idle_timeout = 1
    # Running passes get so long to end; the pod's grace period is longer.
    settings.process.ultimate_exiting_timeout = 60
    # Unused, as nothing is written to objects; never kopf's own default name if that ever changes.
    settings.persistence.finalizer = "triton-operator.dev/operator"
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDiffBase()


class Backoffs:
    """Seconds between tries of a list or a watch, without an end."""

    def __iter__(self) -> Iterator[float]:
        """From the beginning, for each request."""
        yield from (1.0, 1.0, 2.0, 3.0)
        yield from repeat(LONGEST_WATCH_BACKOFF_SECONDS)


class NoMemories(ResourceMemories):
    """Remembers no object for daemons and retries, which there are none of: kopf would keep 0.9 KB for each."""

    async def recall(self, raw_body: RawBody, *, ephemeral: bool = False, **more: Any) -> ResourceMemory:
        """A new memory, which nobody keeps."""
        return await super().recall(raw_body, ephemeral=True, **more)


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers no object: kopf would copy each one whole for every event, to find changes that no handler asks for."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing was stored."""

    def store(self, **_: Any) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """Remembers no handler's progress: those of events have none."""

    def fetch(self, **_: Any) -> None:
        """Nothing was stored."""

    def store(self, **_: Any) -> None:
        """Store nothing."""

    def purge(self, **_: Any) -> None:
        """Nothing is to be removed."""

    def touch(self, **_: Any) -> None:
        """Wake nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """As it is."""
        return essence
