"""kopf, and nothing else of it than the process's life and one watch: no finalizer, no annotation, no progress.

kopf's author calls the stateless `on.event` handlers the ones for level-triggered operators; daemons, timers and
change handlers write to the object or block its deletion while the operator is down.
"""

from collections.abc import Iterator
from typing import Any

import kopf

from triton_operator.kube.cluster import PAGE, SILENT_SECONDS, WATCH_SECONDS, ClusterError
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.watches import backoffs

START_AGAIN_SECONDS = 2.0


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

    kind = TRITON_DEPLOYMENT

    @kopf.on.event(kind.group, kind.version, kind.plural, registry=handlers)
    async def seen(event: Any, **_: Any) -> None:
        controller.seen(event["type"], event["object"])

    return handlers


def configure(settings: kopf.OperatorSettings) -> None:
    """Set what is not kopf's default, each with its reason."""
    # As watches.py does with the children.
    settings.watching.chunk_size = PAGE
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
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


class Backoffs:
    """Seconds between tries of kopf's list or watch; kopf begins anew with each request."""

    def __iter__(self) -> Iterator[float]:
        """Without an end."""
        return backoffs()
