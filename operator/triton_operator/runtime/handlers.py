"""The use of kopf: the process's life, without a watch, finalizer, annotation or progress.

A watch of kopf's ends the process where a namespace is gone or forbidden, and goes on in silence after etcd was put
back, so `watches` has those of the TritonDeployments too.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import kopf

from triton_operator.kube.cluster import server_address
from triton_operator.kube.errors import ClusterError
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.watches import backoffs

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
    async def login(**arguments: Any) -> kopf.ConnectionInfo | None:
        # Without this handler kopf would read the kubernetes client's private configuration, whose layout changes.
        account = kopf.login_with_service_account(**arguments)
        if account is None:
            return kopf.login_with_kubeconfig(**arguments)
        # kopf would ask by a name, and so wait for the cluster's DNS, while all else goes on by the address.
        return replace(account, server=server_address())

    return handlers


def configure(settings: kopf.OperatorSettings) -> None:
    """Set what differs from kopf's defaults, each with its reason."""
    # Watching namespaces and CRDs would need rules for the whole cluster.
    settings.scanning.disabled = True
    # kopf asks the API server once at its start, and would give up after 54 s of errors 5xx, and end the process.
    settings.networking.error_backoffs = Backoffs()
    # Every replica watches; lease.py decides which one works. kopf's peers of equal priority would both stop.
    settings.peering.standalone = True
    # reconcile.py posts Events on transitions; kopf would post copies of log lines.
    settings.posting.enabled = False
    # The time that running passes get to end; the pod's grace period is longer.
    settings.process.ultimate_exiting_timeout = 60


class Backoffs:
    """Seconds between tries of kopf's requests; kopf iterates anew for each request."""

    def __iter__(self) -> Iterator[float]:
        """Return pauses without an end."""
        return backoffs()
