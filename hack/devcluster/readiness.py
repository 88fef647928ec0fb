"""Waits for conditions, quickly when they hold and with a reason when they do not."""

import http.client
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hack.devcluster.control_plane import ApiServerPlace
from hack.devcluster.paths import ClusterError
from hack.devcluster.process import Recorded, log_tail


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    seconds: float,
    processes: Iterable[Recorded] = (),
    logs: Path | None = None,
) -> None:
    """Poll until the condition holds; `processes` must stay alive meanwhile.

    Raises:
        ClusterError: time ran out, or one of the processes died; quotes the end of its log.

    """
    watched = list(processes)
    deadline = time.monotonic() + seconds
    while not condition():
        for process in watched:
            if not process.alive():
                tail = log_tail(logs, process.name, lines=15) if logs else ""
                raise ClusterError(f"{process.name} died while waiting for {what}; {tail}")
        if time.monotonic() > deadline:
            where = f"; see the logs in {logs}" if logs else ""
            raise ClusterError(f"{what} did not happen within {seconds:g} s{where}")
        time.sleep(0.1)


def answers_ready(place: ApiServerPlace) -> bool:
    """Whether the API server answers 200 on /readyz to the administrator."""
    context = ssl.create_default_context(cafile=str(place.certificates / "ca.crt"))
    keys = place.certificates
    context.load_cert_chain(str(keys / "admin.crt"), str(keys / "admin.key"))
    connection = http.client.HTTPSConnection(place.address, place.port, context=context, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
