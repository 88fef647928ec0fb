"""The endpoints for Prometheus and the kubelet: /metrics, /healthz and /readyz on one port."""

import logging
import socket
import sys
import threading
from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from triton_operator.kube.errors import ClusterError
from triton_operator.observed.snapshot import Observed
from triton_operator.runtime.object_metrics import ObjectMetrics
from triton_operator.runtime.stage_metrics import StageMetrics
from triton_operator.runtime.store import Key, Store

Problem = Callable[[], str]
"""Returns what is wrong; empty: nothing."""
MOST_CONNECTIONS = 32
"""Connections at a time, each of which has a thread. Prometheus and the kubelet need one or two each."""
MOST_SCRAPES = 4
"""Answers to /metrics at a time. A client that does not read its answer holds one, and probes need other places."""
SILENT_SECONDS = 10.0
"""How long a connection may be silent, or not read its answer, before it is closed, and how long a new one waits for a
place."""

log = logging.getLogger(__name__)


class Metrics:
    """The operator's metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "triton_operator_reconcile_seconds", "Duration of a pass over one TritonDeployment.", registry=self.registry
        )
        self.reconcile_errors = Counter(
            "triton_operator_reconcile_errors",
            "Passes that failed, by the error's name (Invalid, Forbidden, Conflict, Server, Unavailable, Bug, ...);"
            " Bug also counts what a bug stopped outside of passes: an object that is left out, a watch, a full list.",
            ["reason"],
            registry=self.registry,
        )
        for reason in ("Bug", "Conflict", "Fight", "Server", "StatusRefused", "Unavailable"):
            # A series that begins with 1 has no increase.
            self.reconcile_errors.labels(reason)
        self.writes = Counter(
            "triton_operator_writes",
            "Requests that change something, by verb and kind; there are none at rest.",
            ["verb", "kind"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "triton_operator_queue_depth", "TritonDeployments that wait for a worker.", registry=self.registry
        )
        self.queue_age = Gauge(
            "triton_operator_queue_age_seconds",
            "How long the TritonDeployment that has waited longest for a worker has waited.",
            registry=self.registry,
        )
        self.stages = StageMetrics(self.registry)
        self.objects = ObjectMetrics()
        self.registry.register(self.objects)
        self.leads = Gauge(
            "triton_operator_leads", "1 in the replica that works, 0 in those that stand by.", registry=self.registry
        )

    def watch(self, store: Store) -> None:
        """Count the TritonDeployments of a store by the reason of their Ready condition."""
        self.registry.register(_Deployments(store))

    def jobs_seen(self, key: Key, observed: Observed, now: datetime) -> None:
        """Tell of a TritonDeployment's Jobs as a pass sees them, and log which ended since the pass before."""
        for ended in self.stages.seen(key, observed.jobs.values(), now):
            words, job = "%s: Job %s ended after %.0f s: %s", ended.job
            log.info(words, key, job.name, ended.seconds, ended.reason, extra={"stage": job.stage})

    def failed(self, error: Exception) -> None:
        """Count a pass, or what else a bug ended, by the error's name; what is no ClusterError is a bug."""
        known = isinstance(error, ClusterError)
        self.reconcile_errors.labels(type(error).__name__.removesuffix("Error") if known else "Bug").inc()

    def forget(self, key: Key) -> None:
        """Forget a TritonDeployment that is gone."""
        self.stages.forget(key)
        self.objects.forget(key)

    def stand_by(self) -> None:
        """Forget all TritonDeployments, because another replica tells of them."""
        self.stages.clear()
        self.objects.clear()


class _Deployments(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        reasons = Count(self._store.ready_reasons())
        family = GaugeMetricFamily(
            "triton_operator_deployments", "TritonDeployments by their Ready condition's reason.", labels=["reason"]
        )
        for reason, number in sorted(reasons.items()):
            family.add_metric([reason], number)
        yield family


class BoundedServer(ThreadingHTTPServer):
    """An HTTP server that anybody may reach: it bounds its connections, so no client can use up its threads.

    If there are too many connections, the oldest one that has not sent its whole request makes way for the new one.
    So clients that only hold connections never keep Prometheus or the kubelet from being answered.
    """

    request_queue_size = 128

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        """Listen on a port of all addresses, of both families; 0: a free port."""
        self._places = threading.Semaphore(MOST_CONNECTIONS)
        self._silent: dict[socket.socket, None] = {}
        """The connections whose request is not read yet, the oldest first."""
        self._lock = threading.Lock()
        if socket.has_dualstack_ipv6():
            self.address_family = socket.AF_INET6
        super().__init__(("", port), handler)

    def server_bind(self) -> None:
        """Take connections of both families: the kubelet's probes use the pod's first address, which may be IPv6."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, or close it if no place gets free."""
        if not self._places.acquire(blocking=False):
            self._close_oldest()
            if not self._places.acquire(timeout=SILENT_SECONDS):
                self.shutdown_request(request)
                return
        with self._lock:
            self._silent[request] = None
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system has no thread left.
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, then give its place to another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def has_read(self, request: socket.socket) -> None:
        """Note that a connection has sent its request: it is answered, however many others there are."""
        with self._lock:
            self._silent.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error, unless a client merely left."""
        if not isinstance(sys.exception(), OSError):
            log.exception("a request to the metrics port failed because of a bug")

    def _close_oldest(self) -> None:
        with self._lock:
            if self._silent:
                oldest = next(iter(self._silent))
                del self._silent[oldest]
                with suppress(OSError):
                    # Its thread then reads the end of the request.
                    oldest.shutdown(socket.SHUT_RDWR)

    def _leave(self, request: socket.socket) -> None:
        self.has_read(request)
        self._places.release()


class MetricsPort(BoundedServer):
    """The server of the three endpoints."""

    def __init__(self, port: int, metrics: Metrics, probes: Mapping[str, Problem], detail: Problem) -> None:
        """Listen on a port of all addresses; 0: a free port. ``probes``: what each path of the kubelet's asks.

        ``detail``: what a person should know although nothing is wrong with the process.
        """
        self.probes = probes
        self.detail = detail
        self._registry = metrics.registry
        self._scrapes, self._generating = threading.Semaphore(MOST_SCRAPES), threading.Lock()
        super().__init__(port, _Handler)

    @contextmanager
    def scrape(self) -> Iterator[bytes | None]:
        """Yield the metrics until a client has read them; None: too many clients read theirs."""
        if not self._scrapes.acquire(blocking=False):
            yield None
            return
        try:
            # One at a time: with many objects it takes a core, which passes and probes share.
            with self._generating:
                body = generate_latest(self._registry)
            yield body
        finally:
            self._scrapes.release()


class _Handler(BaseHTTPRequestHandler):
    server: MetricsPort

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(SILENT_SECONDS)

    def do_GET(self) -> None:
        self.server.has_read(self.connection)
        if self.path == "/metrics":
            with self.server.scrape() as body:
                if body is None:
                    self._send(503, "text/plain", b"too many clients read the metrics; ask again\n")
                else:
                    self._send(200, CONTENT_TYPE_LATEST, body)
        elif self.path in self.server.probes:
            problem = self.server.probes[self.path]()
            self._send(503 if problem else 200, "text/plain", f"{problem or self.server.detail() or 'ok'}\n".encode())
        else:
            self._send(404, "text/plain", b"only /metrics, /healthz and /readyz\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing, because probes come every few seconds."""

    def _send(self, code: int, content_type: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(port: int, metrics: Metrics, alive: Problem, ready: Problem, detail: Problem = lambda: "") -> MetricsPort:
    """Serve on a port (0: a free one) in a separate thread until `shutdown()`.

    A probe answers 503 with the problem if there is one, and 200 with the detail, or ok, if there is none.
    """
    server = MetricsPort(port, metrics, {"/healthz": alive, "/readyz": ready}, detail)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
