"""What kopf is told, and what the log tells of what should never end."""

import asyncio
from collections.abc import Iterable
from itertools import islice

import kopf
import pytest

from triton_operator.kube import cluster
from triton_operator.runtime.controller import _log_end
from triton_operator.runtime.handlers import configure


def test_kopf_never_gives_the_watch_up() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    backoffs = settings.networking.error_backoffs
    assert isinstance(backoffs, Iterable)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert pauses[0] == 1
        assert max(pauses) == 5


def test_kopf_has_the_limits_of_the_other_watches() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    watching, networking = settings.watching, settings.networking
    assert (watching.chunk_size, watching.server_timeout) == (cluster.PAGE, cluster.WATCH_SECONDS)
    assert (watching.connect_timeout, watching.inactivity_timeout) == (None, cluster.SILENT_SECONDS)
    assert (networking.connect_timeout, networking.request_timeout) == (cluster.CONNECT_SECONDS, cluster.READ_SECONDS)


def test_kopf_copies_and_compares_nothing() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    body = kopf.Body({"metadata": {"annotations": {"a": "b"}}, "spec": {"models": []}})
    assert settings.persistence.diffbase_storage.build(body=body, extra_fields=[]) == {}
    assert settings.persistence.diffbase_storage.fetch(body=body) is None


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
