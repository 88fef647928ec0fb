"""Addresses of a server, and what is said where nothing answers; answers of a real one are in test_real_server.py."""

import threading
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import small_server
from served_claim import load
from tritonclient.grpc import InferResult, service_pb2

from hack.imagebuild.pod import free_ports
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.measuring.environment import device
from triton_converters.measuring.server import Endpoint, Server, own_words
from triton_converters.measuring.settings import SETTINGS


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("localhost:8001", Endpoint("localhost", 8001)),
        ("10.0.0.7:80", Endpoint("10.0.0.7", 80)),
        ("[fd00::7]:8001", Endpoint("fd00::7", 8001)),
    ],
)
def test_an_address_is_read_and_written_alike(url: str, endpoint: Endpoint) -> None:
    assert Endpoint.parse(url) == endpoint
    assert str(endpoint) == url


def test_a_name_becomes_the_address_that_tritonserver_listens_on() -> None:
    assert str(Endpoint.parse("localhost:8001").resolved()) == "127.0.0.1:8001"


def test_an_address_stays_as_it_is() -> None:
    assert str(Endpoint.parse("[::1]:8001").resolved()) == "[::1]:8001"


def test_a_name_without_address_says_nothing_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the server is not said to have crashed, and nobody is advised to give it more CPU."""
    paused: list[float] = []
    monkeypatch.setattr("triton_converters.measuring.server.time.sleep", paused.append)
    with pytest.raises(StageError, match=r"no-such-host\.invalid has no address") as error:
        Endpoint.parse("no-such-host.invalid:8001").resolved()
    assert (error.value.reason, error.value.final) == (Reason.SERVER_UNREACHABLE, False)
    assert paused == [*SETTINGS.lookup_pauses]


def test_a_server_that_is_not_there_is_worth_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(load(free_ports()), "linear")
    with pytest.raises(StageError, match="does not answer") as error:
        server.wait_ready(seconds=0.5)
    assert (error.value.reason, error.value.final) == (Reason.SERVER_CRASHED, False)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("waiting for model linear: "), "what the log of a Job says that waits for its server"


def test_what_the_server_says_of_itself_is_not_guessed() -> None:
    server = Server(load(free_ports()), "linear")
    for ask in (server.version, server.signature, server.config):
        with pytest.raises(StageError, match="see the server's log"):
            ask()


def endless(stopped: threading.Event) -> ThreadingHTTPServer:
    """A server whose answers have no end; each says when its client has gone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(bytes(2**20))
            stopped.set()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def test_of_an_answer_without_an_end_no_more_is_read_than_any_has() -> None:
    stopped = threading.Event()
    with endless(stopped) as hostile:
        asked = replace(load((hostile.server_port,) * 3), metrics_url=f"127.0.0.1:{hostile.server_port}")
        server = Server(asked, "linear")
        with pytest.raises(StageError, match="longer than"):
            server.config()
        assert stopped.wait(60)
        assert server.used_memory("cpu") == 0
        hostile.shutdown()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Failed to process the request(s) for model 'words_0_0', message: TritonModelException: onnx error 2:"
            " index 97\nis out of bounds\n\nAt:\n  /backends/instance.py(70): execute\n",
            "onnx error 2: index 97\nis out of bounds",
        ),
        ("Failed to process the request(s) for model 'm_0', message: a sentence", "a sentence"),
        ("unexpected shape for input 'x'", "unexpected shape for input 'x'"),
    ],
)
def test_what_a_model_in_python_raised_is_told_without_the_backends_frame(message: str, words: str) -> None:
    assert own_words(message) == words


@pytest.mark.parametrize(
    ("kind", "shape", "raw"),
    [
        ("BYTES", [1], b"\x09\0\0\0a"),
        ("BYTES", [1], b"\x01"),
        ("FP32", [3], b"1234"),
    ],
    ids=["text that is cut", "a length that is cut", "too few numbers"],
)
def test_an_answer_that_cannot_be_read_is_the_candidates_own_failure(
    monkeypatch: pytest.MonkeyPatch, kind: str, shape: list[int], raw: bytes
) -> None:
    answer = service_pb2.ModelInferResponse(raw_output_contents=[raw])
    answer.outputs.add(name="OUT", datatype=kind, shape=shape)
    server = Server(load(free_ports()), "linear")
    client = SimpleNamespace(infer=lambda *_, **__: InferResult(answer))
    monkeypatch.setattr(server, "_client", client)
    with pytest.raises(StageError, match="holds an output OUT that cannot be read") as error:
        server.infer({}, ("OUT",))
    assert error.value.reason is Reason.INFERENCE_FAILED
    with pytest.raises(StageError, match="lacks the output OTHER"):
        server.infer({}, ("OTHER",))


def test_a_model_that_a_step_asks_counts_as_one_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    configurations: dict[str, dict[str, object]] = {
        "whole": {"ensemble_scheduling": {"step": [{"model_name": "cascade"}]}},
        "cascade": {"instance_group": [{"kind": "KIND_CPU"}]},
        "large": {"instance_group": [{"kind": "KIND_GPU"}]},
    }
    for name, configuration in configurations.items():
        monkeypatch.setitem(small_server.ANSWERS, f"/v2/models/{name}/config", configuration)
    with small_server.serving() as small:
        asked = load((small.http_port, small.grpc_port, small.http_port))
        members = [Server(asked, "whole", names).configs() for names in ((), ("cascade", "large"))]
    assert [device(each) for each in members] == ["cpu", "gpu"]
