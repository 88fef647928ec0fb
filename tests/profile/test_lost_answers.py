"""Requests whose answer never came, against a small server in this process: they are sent again, and judge nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import served_claim
import small_server
from grpc import StatusCode
from linear_model import FEATURES, SIGNATURE, Linear
from small_server import MODEL, SmallServer

from hack.imagebuild.pod import free_ports
from triton_converters.claim_store.dump import Array
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import documents
from triton_converters.measuring import server
from triton_converters.measuring.server import Server
from triton_converters.stages.profile import produce

NAMES = tuple(tensor.name for tensor in SIGNATURE.outputs)
SENDINGS = len(server.SETTINGS.resend_pauses) + 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallServer]:
    pauses = (0.05,) * (SENDINGS - 1)
    monkeypatch.setattr(server, "SETTINGS", replace(server.SETTINGS, resend_pauses=pauses))
    with small_server.serving() as served:
        yield served


def ports(small: SmallServer) -> tuple[int, int, int]:
    return small.http_port, small.grpc_port, free_ports()[0]


def ask(small: SmallServer, samples: int = 2, client: Server | None = None) -> dict[str, Array]:
    inputs = {"FEATURES": numpy.ones((samples, FEATURES), numpy.float32)}
    return (client or Server(served_claim.load(ports(small)), MODEL)).infer(inputs, NAMES)


def assert_right(answer: dict[str, Array]) -> None:
    right = Linear()({"FEATURES": numpy.ones((2, FEATURES), numpy.float32)})
    for name in NAMES:
        numpy.testing.assert_array_equal(answer[name], right[name])


def test_a_request_whose_connection_is_reset_is_sent_again(small: SmallServer) -> None:
    small.cuts = 1
    assert_right(ask(small))
    assert (small.connections, small.requests) == (2, 1)


def test_a_client_goes_on_after_a_reset(small: SmallServer) -> None:
    client = Server(served_claim.load(ports(small)), MODEL)
    for small.cuts in (0, 1, 0, 2):
        assert_right(ask(small, client=client))


def test_a_request_that_is_never_answered_is_worth_another_run(small: SmallServer) -> None:
    small.cuts = SENDINGS
    with pytest.raises(StageError, match=r"Connection reset by peer|Socket closed|FD shutdown") as error:
        ask(small)
    assert (error.value.reason, error.value.final) == (Reason.SERVER_UNREACHABLE, False)
    assert (small.cuts, small.requests) == (0, 0)


def test_a_server_that_hangs_is_not_waited_for_for_ever(small: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SETTINGS", replace(server.SETTINGS, answer_seconds=0.2))
    small.hangs = True
    with pytest.raises(StageError, match="got no answer") as error:
        ask(small)
    assert (error.value.reason, error.value.final) == (Reason.SERVER_UNREACHABLE, False)


def test_a_server_that_is_gone_after_a_reset_is_named(small: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Server(served_claim.load(ports(small)), MODEL)
    monkeypatch.setattr(client, "http", server.Endpoint("127.0.0.1", free_ports()[0]))
    small.cuts = 1
    with pytest.raises(StageError, match="the server ended during a request") as error:
        ask(small, client=client)
    assert (error.value.reason, error.value.final) == (Reason.SERVER_CRASHED, False)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (StatusCode.INTERNAL, "onnx runtime error 6: Non-zero status code returned while running Reshape node"),
        (StatusCode.UNKNOWN, "the model's own error"),
        (StatusCode.INVALID_ARGUMENT, "unexpected shape for input 'FEATURES' for model 'linear'"),
        (StatusCode.NOT_FOUND, "unexpected inference output 'SCALED' for model 'linear'"),
        (StatusCode.UNIMPLEMENTED, "request for sequences of a model that has none"),
    ],
)
def test_what_the_server_says_of_the_model_is_an_answer(small: SmallServer, code: StatusCode, words: str) -> None:
    small.errors = [(code, words)]
    with pytest.raises(StageError, match="tritonserver refused a request to model linear: ") as error:
        ask(small)
    assert (error.value.reason, error.value.final) == (Reason.INFERENCE_FAILED, True)
    assert words in error.value.message
    assert small.requests == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (StatusCode.UNAVAILABLE, "Request for unknown model: 'linear' has no available versions"),
        (StatusCode.UNAVAILABLE, "Received http2 header with status: 502"),
        (StatusCode.CANCELLED, "Received RST_STREAM with error code 8"),
        (StatusCode.RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11"),
        (StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"),
        (StatusCode.PERMISSION_DENIED, "Received RST_STREAM with error code 12"),
        (StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
        (StatusCode.UNIMPLEMENTED, "Received http2 header with status: 404"),
        (StatusCode.UNKNOWN, "Stream removed"),
        (StatusCode.UNKNOWN, "recvmsg:Connection reset by peer"),
    ],
)
def test_what_says_nothing_of_the_model_is_no_answer(small: SmallServer, code: StatusCode, words: str) -> None:
    small.errors = [(code, words)]
    assert_right(ask(small))
    assert small.requests == 2


def test_a_request_that_is_too_large_is_not_sent_again(small: SmallServer) -> None:
    with pytest.raises(StageError, match="message larger than max") as error:
        ask(small, samples=small_server.LARGEST_MESSAGE)
    assert (error.value.reason, error.value.final) == (Reason.INFERENCE_FAILED, True)


def test_a_profile_without_answers_leaves_no_verdict(
    small: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served_claim.build(tmp_path)
    (incoming := tmp_path / "incoming").mkdir()
    for name in ("reference_directory", "measurement_directory", "revision_directory", "model_repository"):
        monkeypatch.setattr(getattr(layout, name), "__defaults__", (tmp_path,))
    request = served_claim.profile_request("cut", MODEL, ports(small))
    small.cuts = SENDINGS
    with pytest.raises(StageError) as error:
        produce.run(request, (request.key,), incoming)
    assert (error.value.reason, error.value.final) == (Reason.SERVER_UNREACHABLE, False)
    assert not (incoming / documents.RESULT).exists()
