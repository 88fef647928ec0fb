"""The client of docs/serving.md: it repeats what was UNAVAILABLE, and nothing else."""

import re
import runpy
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/serving.md"
PROBER = ROOT / "tests/e2e/in_pod/probe.py"
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # gRPC has no types
    """Refuses the first requests with a status of gRPC's."""

    def __init__(self) -> None:
        self.refusals: list[grpc.StatusCode] = []
        self.asked = 0
        self._lock = threading.Lock()

    def ServerLive(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - gRPC's name
        with self._lock:
            self.asked += 1
            refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            context.abort(refusal, "not now")
        return service_pb2.ServerLiveResponse(live=True)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def names(server: Server, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the page's code defines; its client asks the server."""
    running = grpc.server(ThreadPoolExecutor(2))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(server, running)
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    (code,) = CODE.findall(PAGE.read_text(encoding="utf-8"))
    assert "ocr:8001" in code
    script = tmp_path / "client.py"
    script.write_text(code.replace("ocr:8001", f"127.0.0.1:{port}"))
    found = runpy.run_path(str(script))
    yield found
    found["client"].close()
    running.stop(None)


def test_it_repeats_what_was_unavailable(names: dict[str, Any], server: Server) -> None:
    server.refusals = [grpc.StatusCode.UNAVAILABLE] * 2
    assert names["client"].is_server_live()
    assert server.asked == 3


def test_it_repeats_nothing_else(names: dict[str, Any], server: Server) -> None:
    server.refusals = [grpc.StatusCode.INVALID_ARGUMENT]
    with pytest.raises(InferenceServerException, match="not now"):
        names["client"].is_server_live()
    assert server.asked == 1


def test_the_prober_of_the_end_to_end_tests_does_the_same(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(PROBER)])
    assert runpy.run_path(str(PROBER))["RETRYING"] == names["options"]
