"""The endpoints for Prometheus and the kubelet: /metrics, /healthz and /readyz on one port."""

import threading
from collections import Counter as Count
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from triton_operator.runtime.store import Store

Problem = Callable[[], str]
"""Returns what is wrong; empty: nothing."""


class Metrics:
    """The operator's metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "triton_operator_reconcile_seconds", "Duration of a pass over one TritonDeployment.", registry=self.registry
        )
        self.reconcile_errors = Counter(
            "triton_operator_reconcile_errors",
            "Passes that failed, by the error's name (Invalid, Forbidden, Conflict, Unavailable, Bug, ...).",
            ["reason"],
            registry=self.registry,
        )
        self.writes = Counter(
            "triton_operator_writes",
            "Requests that change something, by verb and kind; there are none at rest.",
            ["verb", "kind"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "triton_operator_queue_depth", "TritonDeployments that wait for a worker.", registry=self.registry
        )

        self.leads = Gauge(
            "triton_operator_leads", "1 in the replica that works, 0 in those that stand by.", registry=self.registry
        )

    def watch(self, store: Store) -> None:
        """Count the TritonDeployments of a store by the reason of their Ready condition."""
        self.registry.register(_Deployments(store))


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


def serve(port: int, metrics: Metrics, alive: Problem, ready: Problem) -> ThreadingHTTPServer:
    """Serve on a port (0: a free one) in a separate thread until `shutdown()`.

    /healthz and /readyz answer 503 with the problem if there is one.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(metrics.registry))
            elif self.path in ("/healthz", "/readyz"):
                problem = alive() if self.path == "/healthz" else ready()
                self._answer(503 if problem else 200, "text/plain", f"{problem or 'ok'}\n".encode())
            else:
                self._answer(404, "text/plain", b"only /metrics, /healthz and /readyz\n")

        def _answer(self, code: int, content_type: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing, because probes come every few seconds."""

    server = ThreadingHTTPServer(("", port), Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
