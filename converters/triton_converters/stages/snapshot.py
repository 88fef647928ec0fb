"""Stage ``snapshot``: read the counters of servers that clients use. It sends no inference request."""

import http.client
import time
from urllib.parse import urlsplit

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters, SnapshotResult
from triton_converters.contract.text import printable, shortened
from triton_converters.contract.upkeep_requests import ServerPod, SnapshotRequest
from triton_converters.measuring.counters import counters

SECONDS = 5.0
"""How long to wait for a server to connect, and for each part of its answer; the pod's deadline bounds the whole."""
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a server is asked again. Some network plugins let a pod out only seconds after its start."""
LARGEST_BYTES = 4 * 2**20
"""Longest metrics that are read. A server of one model has some 10 KB."""
LONGEST_WORDS = 200
"""Most of an error that is kept, so that those of 32 pods fit into an answer."""


def run(request: SnapshotRequest) -> SnapshotResult:
    """Return the counters of all pods.

    Raises StageError(ServerUnreachable) if those of one pod cannot be read: without it, the worst pod is not known.
    """
    active, previous = (
        tuple(_read(pod, request.model_name) for pod in pods) for pods in (request.active, request.previous)
    )
    return SnapshotResult(active, previous)


def _read(pod: ServerPod, model: str) -> Counters:
    pauses = iter(PAUSES)
    while True:
        try:
            found = counters(_metrics(pod.metrics), pod.name, model)
        except (OSError, ValueError) as error:
            words = shortened(printable(str(error)), LONGEST_WORDS)
            pause = next(pauses, None)
            if pause is None:
                message = f"the metrics of pod {pod.name} at {pod.metrics} cannot be read: {words}"
                raise StageError(Reason.SERVER_UNREACHABLE, message, final=False) from error
            print(f"pod {pod.name}: {words}; it is asked again in {pause:g} s", flush=True)
            time.sleep(pause)
        else:
            seconds = found.microseconds / 1e6
            print(f"pod {pod.name}: {found.succeeded} requests in {seconds:g} s, {found.failed} failed", flush=True)
            return found


def _metrics(address: str) -> str:
    """Return the text of a server's metrics; raises OSError or ValueError if there is none, or too much."""
    place = urlsplit(f"//{address}")
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise ValueError(f"the server answers {response.status}")
        body = response.read(LARGEST_BYTES + 1)
    except http.client.HTTPException as error:
        raise OSError(f"the server does not answer in HTTP: {error!r}") from error
    finally:
        connection.close()
    if len(body) > LARGEST_BYTES:
        raise ValueError(f"the answer is longer than {LARGEST_BYTES} bytes")
    return body.decode(errors="replace")
