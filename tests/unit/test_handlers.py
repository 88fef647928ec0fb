"""What kopf is told, and what the log tells of what should never end."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import kopf
import pytest
from kubernetes.config import incluster_config

from triton_operator.kube.errors import ClusterError, NotFoundError, UnavailableError
from triton_operator.runtime.controller import _log_end
from triton_operator.runtime.handlers import START_AGAIN_SECONDS, configure, registry


class Told:
    """A controller that notes what the handlers tell it; its start fails as often as there are errors."""

    def __init__(self, *errors: Exception) -> None:
        self.calls: list[str] = []
        self._errors = list(errors)

    async def start(self) -> None:
        self.calls.append("start")
        if self._errors:
            raise self._errors.pop(0)

    async def stop(self) -> None:
        self.calls.append("stop")


def handlers_of(controller: Told) -> dict[str, Any]:
    """The handlers that kopf would call, by the names of their functions."""
    given = registry(controller)  # type: ignore[arg-type]  # a stand-in
    return {each.id.rpartition(".")[2]: each for each in given._activities.get_all_handlers()}


def call(handler: Any, **arguments: Any) -> None:
    """Call a handler as kopf does, which gives it much more than it asks for."""
    asyncio.run(handler.fn(logger=None, memo=None, **arguments))


def test_kopf_calls_nothing_that_would_write_to_an_object_or_watch_it() -> None:
    controller = Told()
    given = registry(controller)  # type: ignore[arg-type]  # a stand-in
    of_objects = (given._changing, given._spawning, given._indexing, given._webhooks, given._watching)
    assert [list(each.get_all_handlers()) for each in of_objects] == [[]] * 5
    assert handlers_of(controller).keys() == {"start", "stop", "login"}


def test_kopf_asks_the_same_address_as_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without DNS, a replica that the one half reaches the API server of and the other not would be half alive."""
    for name, file in (("SERVICE_TOKEN_FILENAME", "token"), ("SERVICE_CERT_FILENAME", "ca.crt")):
        (tmp_path / file).write_text("given", encoding="utf-8")
        monkeypatch.setattr(incluster_config, name, str(tmp_path / file))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    account = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="given")
    monkeypatch.setattr(kopf, "login_with_service_account", lambda **_: account)
    login = handlers_of(Told())["login"]
    assert asyncio.run(login.fn()) == replace(account, server="https://[fd00::1]:443")


@pytest.mark.parametrize("error", [NotFoundError("install the CRD first"), UnavailableError("no answer")])
def test_a_start_that_meets_no_crd_or_no_api_server_is_tried_again(error: ClusterError) -> None:
    controller, settings = Told(error), kopf.OperatorSettings()
    start = handlers_of(controller)["start"]
    with pytest.raises(kopf.TemporaryError, match=str(error)) as raised:
        call(start, settings=settings)
    assert (raised.value.delay, raised.value.__cause__) == (START_AGAIN_SECONDS, error)
    assert settings.scanning.disabled, "kopf is told before anything can fail"
    call(start, settings=settings)
    assert controller.calls == ["start", "start"]


def test_a_bug_at_the_start_is_not_tried_again() -> None:
    """kopf then ends the process, and the kubelet tells of it."""
    with pytest.raises(KeyError):
        call(handlers_of(Told(KeyError("no such kind")))["start"], settings=kopf.OperatorSettings())


def test_the_end_of_the_process_stops_the_controller() -> None:
    controller = Told()
    call(handlers_of(controller)["stop"])
    assert controller.calls == ["stop"]


def test_kopf_never_gives_its_first_request_up() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    backoffs = settings.networking.error_backoffs
    assert isinstance(backoffs, Iterable)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert pauses[0] == 1
        assert max(pauses) == 5


def test_a_bug_that_ends_the_queue_leaves_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)
        raise ValueError("no such key")

    async def run() -> None:
        ends, is_stopped = asyncio.create_task(work(0)), asyncio.create_task(work(60))
        for task in (ends, is_stopped):
            task.add_done_callback(_log_end)
        await asyncio.wait([ends])
        is_stopped.cancel()
        await asyncio.wait([is_stopped])

    asyncio.run(run())
    (record,) = caplog.records
    assert "ended because of a bug\nTraceback" in caplog.text
    assert "ValueError: no such key" in caplog.text
    assert record.levelname == "ERROR"
