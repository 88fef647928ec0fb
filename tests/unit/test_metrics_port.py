"""The port of /metrics, /healthz and /readyz, which every pod of the cluster can reach."""

import logging
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.error import HTTPError

import pytest
from prometheus_client import Gauge

from tests.conftest import Attack
from triton_operator.runtime import metrics as under_test
from triton_operator.runtime.metrics import MOST_CONNECTIONS, MOST_SCRAPES, Metrics, serve

SILENT = 0.3
PATIENCE_SECONDS = 60.0
"""A busy machine takes seconds to answer; what is asserted is that it does."""
HALF_OPEN = {
    "nothing": b"",
    "half a line": b"GET /metr",
    "half a header": b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: ",
}


@pytest.fixture
def slow() -> threading.Event:
    """Set: /readyz answers. Until then it waits."""
    return threading.Event()


@pytest.fixture
def port(slow: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    # Silent connections are to be closed for others, and not because their time is over.
    monkeypatch.setattr(under_test, "SILENT_SECONDS", 10 * PATIENCE_SECONDS)
    server = serve(0, Metrics(), alive=lambda: "", ready=lambda: "" if slow.wait(PATIENCE_SECONDS) else "late")
    yield server.server_port
    slow.set()
    server.shutdown()
    server.server_close()


def get(port: int, path: str) -> tuple[int, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
        return answer.status, answer.read().decode()


def opened(port: int, sent: bytes, number: int, stack: ExitStack) -> list[socket.socket]:
    """Connections whose request never ends."""
    found = []
    for _ in range(number):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS))
        connection.sendall(sent)
        found.append(connection)
    return found


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_probes_are_answered_on_both_families(port: int, host: str) -> None:
    with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=PATIENCE_SECONDS) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("sent", HALF_OPEN.values(), ids=HALF_OPEN)
def test_200_connections_that_send_no_request_keep_nobody_from_being_answered(port: int, sent: bytes) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        opened(port, sent, 200, stack)
        for path, words in (("/metrics", "triton_operator_queue_depth"), ("/healthz", "ok")):
            status, text = get(port, path)
            assert (status, words in text) == (200, True)
        assert threading.active_count() <= before + MOST_CONNECTIONS


def test_a_silent_connection_is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "SILENT_SECONDS", SILENT)
    server = serve(0, Metrics(), alive=lambda: "", ready=lambda: "")
    before = threading.active_count()
    with ExitStack() as stack:
        silent = opened(server.server_port, b"GET /", 3, stack)
        assert [each.recv(1) for each in silent] == [b"", b"", b""]
        assert eventually(lambda: threading.active_count() <= before)
    server.shutdown()
    server.server_close()


def test_a_request_that_is_being_answered_is_not_cut_off_by_others(port: int, slow: threading.Event) -> None:
    answers: list[tuple[int, str]] = []
    waiting = threading.Thread(target=lambda: answers.append(get(port, "/readyz")))
    waiting.start()
    with ExitStack() as stack:
        opened(port, b"", 4 * MOST_CONNECTIONS, stack)
        assert get(port, "/healthz") == (200, "ok\n")
        slow.set()
        waiting.join(PATIENCE_SECONDS)
    assert answers == [(200, "ok\n")]


def test_48_clients_that_do_not_read_their_metrics_keep_no_probe_from_being_answered(
    monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    monkeypatch.setattr(under_test, "SILENT_SECONDS", 10 * PATIENCE_SECONDS)
    metrics = Metrics()
    # More than the system keeps for a connection whose other end does not read.
    many = Gauge("a_test_s_filling", "x", ["number"], registry=metrics.registry)
    for number in range(10_000):
        many.labels(f"{number:01000}")
    server = serve(0, metrics, alive=lambda: "", ready=lambda: "")
    before = threading.active_count()
    with ExitStack() as stack:
        deaf = opened(server.server_port, b"GET /metrics HTTP/1.0\r\n\r\n", MOST_SCRAPES, stack)
        assert [each.recv(1) for each in deaf] == [b"H"] * MOST_SCRAPES
        opened(server.server_port, b"GET /metrics HTTP/1.0\r\n\r\n", 48 - MOST_SCRAPES, stack)
        for path in ("/healthz", "/readyz"):
            assert get(server.server_port, path) == (200, "ok\n")
        with pytest.raises(HTTPError, match="503"):
            get(server.server_port, "/metrics")
    assert eventually(lambda: threading.active_count() <= before)
    assert get(server.server_port, "/metrics")[0] == 200
    server.shutdown()
    server.server_close()
    attack(
        "client of the operator",
        "the probes, by 48 clients that do not read 10 MB of metrics",
        "both probes answered, further scrapes got 503",
    )


def test_a_client_that_leaves_early_is_no_error(
    port: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), ExitStack() as stack:
        opened(port, b"GET /metrics HTTP/1.0\r\nHost", 2 * MOST_CONNECTIONS, stack)
        assert get(port, "/healthz") == (200, "ok\n")
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_a_bug_in_a_metric_is_logged(port: int, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise KeyError("bug")

    server = serve(0, Metrics(), alive=broken, ready=lambda: "")
    with pytest.raises(OSError):
        get(server.server_port, "/healthz")
    assert eventually(lambda: "failed because of a bug" in caplog.text)
    server.shutdown()
    server.server_close()
