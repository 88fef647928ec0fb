"""What becomes of an answer, of none, and of a bug on the way: each is told apart."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from triton_operator.kube import errors
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection
from triton_operator.kube.errors import (
    ClusterError,
    ConflictError,
    DisconnectedError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    ServerError,
    UnavailableError,
)
from triton_operator.kube.kinds import CONFIG_MAP
from triton_operator.runtime import reporting, writing

JSON = dict[str, Any]


class Answer:
    """An answer of the API server, or of what stands in its place."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.headers = {"Retry-After": "7"}
        self._text = text

    def read(self) -> bytes:
        return self._text.encode()


def a_status(code: int, message: str = "no") -> Answer:
    return Answer(code, json.dumps({"kind": "Status", "code": code, "message": message}))


def asked(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any]) -> JSON:
    """Create an object where the package's transport answers like that."""
    connection = Connection(client.Configuration(), "test", 1.0)
    monkeypatch.setattr(connection._client, "call_api", answer)
    return Cluster(connection).create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "vision"}})


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, InvalidError),
        (401, UnavailableError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (413, InvalidError),
        (415, InvalidError),
        (422, InvalidError),
        (429, UnavailableError),
        (500, ServerError),
        (503, ServerError),
        (504, ServerError),
    ],
)
def test_each_status_has_its_error(monkeypatch: pytest.MonkeyPatch, code: int, error: type[ClusterError]) -> None:
    with pytest.raises(ClusterError, match="no") as caught:
        asked(monkeypatch, lambda *_, **__: a_status(code))
    assert type(caught.value) is error
    assert caught.value.retry_after == 7.0


def test_a_field_that_no_schema_has_is_the_objects_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server's own words, of v1.34; its Status has no reason that would tell it from a bug."""
    words = "failed to create typed patch object (vision/a; /v1, Kind=ConfigMap): .dato: field not declared in schema"
    with pytest.raises(InvalidError, match=r"\.dato: field not declared in schema"):
        asked(monkeypatch, lambda *_, **__: a_status(500, words))
    with pytest.raises(ServerError):
        asked(monkeypatch, lambda *_, **__: a_status(500, f"failed calling webhook: {words}"))


@pytest.mark.parametrize(
    "error",
    [
        urllib3.exceptions.ProtocolError("Connection aborted."),
        ConnectionResetError("reset by peer"),
        ApiException(status=0, reason="SSLError\ncertificate verify failed"),
    ],
)
def test_no_answer_ends_a_pass(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    with pytest.raises(UnavailableError, match="no answer from the API server: ") as caught:
        asked(monkeypatch, raising(error))
    assert isinstance(caught.value, DisconnectedError)


def test_a_page_of_a_proxy_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match="what answered is no API server, because it sent no JSON"):
        asked(monkeypatch, lambda *_, **__: Answer(200, "<html>Please log in</html>"))


@pytest.mark.parametrize("bug", [ValueError("no such stage"), TypeError("not JSON serializable"), KeyError("items")])
def test_a_bug_on_the_way_stays_one(monkeypatch: pytest.MonkeyPatch, bug: Exception) -> None:
    with pytest.raises(type(bug)):
        asked(monkeypatch, raising(bug))


def test_the_api_server_is_asked_to_answer_a_write_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a webhook that hangs would look like an API server that does not answer."""
    urls: list[str] = []

    def answer(method: str, url: str, *_: object, **__: object) -> Answer:
        urls.append(f"{method} {url.partition('?')[2]}")
        return Answer(200, "{}")

    asked(monkeypatch, answer)
    connection = Connection(client.Configuration(), "test", 1.0)
    monkeypatch.setattr(connection._client, "call_api", answer)
    Cluster(connection).get(CONFIG_MAP, "vision", "a")
    assert urls == ["POST fieldManager=triton-operator&fieldValidation=Strict&timeout=4s", "GET "]


def test_the_tree_names_every_error() -> None:
    """Those of the runtime too, which its modules define."""
    kinds: list[type[ClusterError]] = [ClusterError, *_below(ClusterError)]
    assert {reporting.StatusRefusedError, writing.ForeignError} <= set(kinds)
    assert {each.__name__ for each in kinds} == set(re.findall(r"\w+Error(?=  )", errors.__doc__ or ""))


def _below(kind: type[ClusterError]) -> Iterator[type[ClusterError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)
