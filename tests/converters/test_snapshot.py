"""Counters of servers, read over HTTP from a real server on loopback that says what Triton says, or worse."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile_text import HOSTILE, obeyed
from triton_converters.contract.envelope import MESSAGE_LIMIT_BYTES, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters, SnapshotResult
from triton_converters.contract.stages import STAGES
from triton_converters.contract.upkeep_requests import ServerPod, SnapshotRequest
from triton_converters.measuring.counters import LARGEST, counters
from triton_converters.stages import snapshot

TRITON = """\
# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="digits",version="1"} 1250
nv_inference_request_success{model="digits.preprocess",version="1"} 9000
# HELP nv_inference_request_failure Number of failed inference requests, all batch sizes
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="digits",reason="REJECTED",version="1"} 1
nv_inference_request_failure{model="digits",reason="OTHER",version="1"} 2
nv_inference_request_failure{model="digits",reason="BACKEND",version="1"} 4
nv_inference_request_failure{model="digits",reason="CANCELED",version="1"} 700
nv_inference_request_failure{model="digits.preprocess",reason="OTHER",version="1"} 9000
# HELP nv_inference_count Number of inferences performed (does not include cached requests)
# TYPE nv_inference_count counter
nv_inference_count{model="digits",version="1"} 10000
# HELP nv_inference_request_duration_us Cumulative inference request duration in microseconds (includes cached requests)
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="digits",version="1"} 2500417
nv_inference_request_duration_us{model="digits.preprocess",version="1"} 9000
# HELP nv_cpu_memory_used_bytes CPU used memory (RAM), in bytes
# TYPE nv_cpu_memory_used_bytes gauge
nv_cpu_memory_used_bytes 3212849152
"""
"""Of release 25.10, shortened."""
OLDER = """\
nv_inference_request_success{gpu_uuid="GPU-1",model="digits",version="1"} 100.000000
nv_inference_request_success{gpu_uuid="GPU-2",model="digits",version="1"} 50.000000
nv_inference_request_failure{gpu_uuid="GPU-1",model="digits",version="1"} 3.000000
nv_inference_request_duration_us{gpu_uuid="GPU-1",model="digits",version="1"} 1000.000000
nv_inference_request_duration_us{gpu_uuid="GPU-2",model="digits",version="1"} 1.5e3
"""
"""Without reasons, of two GPUs."""


@contextmanager
def serving(*answers: tuple[int, bytes]) -> Iterator[str]:
    """A server that gives these answers one after the other, and the last one from then on; its address."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PAUSES", (0.0, 0.0))


def asked(address: str) -> SnapshotRequest:
    return SnapshotRequest("0" * 16, "digits", (ServerPod("digits-1-a", address),))


def test_the_counters_of_both_revisions_are_read() -> None:
    with serving((200, TRITON.encode())) as new, serving((200, OLDER.encode())) as old:
        request = SnapshotRequest(
            "0" * 16, "digits", (ServerPod("new-a", new), ServerPod("new-b", new)), (ServerPod("old-a", old),)
        )
        found = snapshot.run(request)
    assert found == SnapshotResult(
        (Counters("new-a", 1250, 6, 2500417), Counters("new-b", 1250, 6, 2500417)), (Counters("old-a", 150, 3, 2500),)
    )


@pytest.mark.parametrize(("counted", "failed"), [(0, 0), (1, 1), (2, 1), (4, 2)])
def test_a_failed_request_to_an_ensemble_counts_once(counted: int, failed: int) -> None:
    """Triton counts it twice; between the two, it is counted once so far."""
    text = TRITON.replace('"OTHER",version="1"} 2', f'"OTHER",version="1"}} {counted}')
    assert counters(text, "a", "digits").failed == 5 + failed
    alone = "\n".join(line for line in text.splitlines() if "preprocess" not in line)
    assert counters(alone, "a", "digits").failed == 5 + counted


def test_a_server_that_answers_late_is_asked_again() -> None:
    with serving((503, b""), (200, b"# nothing yet\n"), (200, TRITON.encode())) as address:
        assert snapshot.run(asked(address)).active[0].succeeded == 1250


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, TRITON.encode()), "the server answers 500"),
        ((200, b""), "they have no counters of model digits"),
        ((200, TRITON.replace('"digits"', '"other"').encode()), "they have no counters of model digits"),
        ((200, b"x" * (snapshot.LARGEST_BYTES + 1)), "longer than"),
        ((200, TRITON.replace(" 1250", " NaN").encode()), "a counter is nan"),
        ((200, TRITON.replace(" 1250", " 1e999").encode()), "a counter is inf"),
        ((200, TRITON.replace(" 1250", " -3").encode()), "a counter is -3"),
        ((200, TRITON.replace(" 1250", f" {10 * LARGEST}").encode()), "is larger than"),
        ((200, TRITON.replace(" 1250", " one").encode()), "could not convert"),
    ],
)
def test_what_is_no_counter_is_an_error_that_names_the_pod(answer: tuple[int, bytes], words: str) -> None:
    with serving(answer) as address, pytest.raises(StageError, match=words) as error:
        snapshot.run(asked(address))
    assert (error.value.reason, error.value.final) == (Reason.SERVER_UNREACHABLE, False)
    assert f"pod digits-1-a at {address}" in error.value.message


def test_a_server_that_is_gone_is_an_error() -> None:
    with serving((200, b"")) as address:
        pass
    with pytest.raises(StageError, match="refused"):
        snapshot.run(asked(address))


@given(st.text() | st.text().map(lambda text: TRITON.replace(" 1250", f" {text}")) | st.just(HOSTILE * 100))
def test_any_text_gives_counters_or_one_error(text: str) -> None:
    try:
        found = counters(text, "pod", "digits")
    except ValueError:
        return
    assert all(0 <= each <= LARGEST for each in (found.succeeded, found.failed, found.microseconds))


def test_nothing_of_a_hostile_server_reaches_a_terminal() -> None:
    hostile = TRITON.replace(" 1250", f" {HOSTILE.replace(chr(13), '').replace(chr(0x2028), '')[:8]}")
    with serving((200, hostile.encode())) as address, pytest.raises(StageError) as error:
        snapshot.run(asked(address))
    assert obeyed(error.value.message) == set()


def test_the_longest_answer_fits() -> None:
    """As many pods as the operator asks for, with the longest names and counters."""
    pods = tuple(
        Counters(f"{'d' * 40}-0123456789-{n:05}", LARGEST - n, LARGEST - 7 * n, LARGEST - n * n) for n in range(32)
    )
    outcome = Outcome("snapshot", "0" * 16, SnapshotResult(pods, pods))
    assert len(outcome.to_json()) <= MESSAGE_LIMIT_BYTES
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_the_stage_leaves_nothing_on_the_claim() -> None:
    assert STAGES["snapshot"].directory is None
    assert STAGES["snapshot"].request is SnapshotRequest
