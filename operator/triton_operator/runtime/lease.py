"""Which of several replicas may write: the one that holds a Lease (coordination.k8s.io) and renewed it recently.

A holder stops writing FENCE_SECONDS after its last renewal, whatever happens. Another replica takes the Lease
LEASE_SECONDS after the last renewal that it saw. By then the old holder's last write has ended, because a write takes
at most cluster.WRITE_SECONDS.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from triton_operator.kube.cluster import WRITE_SECONDS, Cluster
from triton_operator.kube.errors import ClusterError
from triton_operator.kube.kinds import LEASE
from triton_operator.names import MANAGED_BY, MANAGED_BY_LABEL

FENCE_SECONDS = 8.0
"""How long a holder may write after its last renewal, in seconds: two renewals may fail, and a third still comes in
time (RENEW_SECONDS)."""
LEASE_SECONDS = FENCE_SECONDS + WRITE_SECONDS
"""How long another replica waits after the last renewal that it saw, in seconds: a write that the holder began at the
very end of FENCE_SECONDS has then ended."""
RENEW_SECONDS = 3.0
"""Pause between two looks at the Lease. Another replica has it 3 s after an orderly end, 19 s after a crash."""

log = logging.getLogger(__name__)


def running_time() -> float:
    """Seconds of a clock that also runs while the process is stopped or the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """A Lease as one replica sees it. Any thread may call `held`; the rest is for one thread at a time."""

    def __init__(
        self, cluster: Cluster, namespace: str, name: str, holder: str, clock: Callable[[], float] = running_time
    ) -> None:
        """`holder` names this replica. After a restart with the same name it goes on at once."""
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._holder = holder
        self._clock = clock
        self._fence = float("-inf")
        self._seen = ("", 0.0)

    def held(self) -> bool:
        """Whether this replica may write now."""
        return self._clock() < self._fence

    def renew(self) -> None:
        """Renew the Lease, or take it if nobody holds it. Never raises: `held` tells the outcome."""
        try:
            found = self._cluster.get(LEASE, self._namespace, self._name)
            begun = self._clock()
            if self._is_free(found, begun):
                self._write(found, self._holder)
                self._fence = begun + FENCE_SECONDS
        except ClusterError as error:
            # A conflict means that another replica was faster. After any other error the fence closes by itself.
            log.warning("Lease %s/%s: trying again in %g s: %s", self._namespace, self._name, RENEW_SECONDS, error)

    def release(self) -> None:
        """Let another replica work at once if this one holds the Lease. Writes nothing afterwards."""
        if not self.held():
            return
        self._fence = float("-inf")
        try:
            found = self._cluster.get(LEASE, self._namespace, self._name)
            if found is not None and found["spec"].get("holderIdentity") == self._holder:
                self._write(found, "")
        except ClusterError as error:
            log.warning("Lease %s/%s was not released and expires by itself: %s", self._namespace, self._name, error)

    def _is_free(self, found: dict[str, Any] | None, now: float) -> bool:
        if found is None:
            return True
        holder, version = found["spec"].get("holderIdentity", ""), found["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            # Two machines' clocks differ, so what counts is how long this one saw no renewal.
            self._seen = (version, now)
        return holder in ("", self._holder) or now - self._seen[1] > LEASE_SECONDS

    def _write(self, found: dict[str, Any] | None, holder: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old = {} if found is None else found["spec"]
        new = old | {"holderIdentity": holder, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": now}
        if old.get("holderIdentity", "") != holder:
            log.info(
                "Lease %s/%s: holder %s, before: %s", self._namespace, self._name, holder or "nobody", old or "nobody"
            )
            new |= {"acquireTime": now, "leaseTransitions": old.get("leaseTransitions", 0) + bool(holder)}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": {MANAGED_BY_LABEL: MANAGED_BY}}
        if found is None:
            typed = {"apiVersion": LEASE.api_version, "kind": LEASE.kind}
            self._cluster.create(LEASE, typed | {"metadata": metadata, "spec": new})
        else:
            self._cluster.replace(LEASE, found | {"spec": new})
