"""The use of kopf: the process's life and one watch, without finalizer, annotation or progress.

kopf's author recommends the stateless `on.event` handlers for level-triggered operators. Daemons, timers and change
handlers write to the object or block its deletion while the operator is down.
"""

from collections.abc import Iterator
from typing import Any

import kopf

from triton_operator.kube.cluster import (
    CONNECT_SECONDS,
    READ_SECONDS,
    SILENT_SECONDS,
    WATCH_SECONDS,
    ClusterError,
)
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.kopf_session import with_shallow_answers
from triton_operator.runtime.watches import backoffs

FEW = 10
"""TritonDeployments in a page of kopf's list, which it makes at its start: it reads pages of any length, and labels
alone may make an object as long as the API server takes one."""
START_AGAIN_SECONDS = 2.0
"""The pause before another try to start, in seconds: whoever installs the CRD next, or waits for the API server, should
not wait for the operator."""


def registry(controller: Controller) -> kopf.OperatorRegistry:
    """The handlers that feed a controller."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        try:
            await controller.start()
        except ClusterError as error:
            # The CRD or the API server may come later.
            raise kopf.TemporaryError(str(error), delay=START_AGAIN_SECONDS) from error

    @kopf.on.cleanup(registry=handlers)
    async def stop(**_: Any) -> None:
        await controller.stop()

    @kopf.on.login(registry=handlers)
    async def login(**arguments: Any) -> kopf.AiohttpSession | None:
        # Without this handler kopf would read the kubernetes client's private configuration, whose layout changes.
        info = kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)
        return None if info is None else with_shallow_answers(info)

    kind = TRITON_DEPLOYMENT

    @kopf.on.event(kind.group, kind.version, kind.plural, registry=handlers)
    async def seen(event: Any, **_: Any) -> None:
        controller.seen(event["type"], event["object"])

    return handlers


def configure(settings: kopf.OperatorSettings) -> None:
    """Set what differs from kopf's defaults, each with its reason."""
    settings.watching.chunk_size = FEW
    # The limits of the watches of all other kinds, for the reasons that kube/cluster.py gives.
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
    # Of watches too, because they have no other.
    settings.networking.connect_timeout = CONNECT_SECONDS
    # kopf counts the whole answer, and by default waits 5 minutes for it. Here it is one page of a list.
    settings.networking.request_timeout = READ_SECONDS
    # kopf would give up after 54 s of errors 5xx, and end the process.
    settings.networking.error_backoffs = Backoffs()
    # Watching namespaces and CRDs would need rules for the whole cluster.
    settings.scanning.disabled = True
    # Every replica watches; lease.py decides which one works. kopf's peers of equal priority would both stop.
    settings.peering.standalone = True
    # reconcile.py posts Events on transitions; kopf would post copies of log lines.
    settings.posting.enabled = False
    # A worker of kopf only copies an object into the store, so it need not wait for the next event.
    settings.queueing.idle_timeout = 1
    # The time that running passes get to end; the pod's grace period is longer.
    settings.process.ultimate_exiting_timeout = 60
    # Unused, because kopf writes nothing to objects; if that changes, the name must not be kopf's default.
    settings.persistence.finalizer = "triton-operator.dev/operator"
    settings.persistence.diffbase_storage = NoDifferences()


class NoDifferences(kopf.DiffBaseStorage):
    """Keeps kopf from copying each object twice and comparing the copies, for handlers that do not exist here."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Return an empty essence."""
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> None:
        """Return nothing: no essence was ever stored."""

    def store(self, **_: Any) -> None:
        """Store nothing."""


class Backoffs:
    """Seconds between tries of kopf's list or watch; kopf iterates anew for each request."""

    def __iter__(self) -> Iterator[float]:
        """Return pauses without an end."""
        return backoffs()
