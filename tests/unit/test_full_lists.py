"""A full list that fails is tried again: neither an outage nor a bug ends the queue or the work of a replica."""

import asyncio
from collections.abc import Callable

import pytest

from triton_operator.kube.errors import ClusterError, ForbiddenError, ServerError, UnavailableError
from triton_operator.kube.kinds import CONFIG_MAP, EVENT, HTTP_ROUTE, JOB, SCALED_OBJECT, ApiKind
from triton_operator.runtime import controller as controller_module
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.lease import Lease
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result, WorkQueue
from triton_operator.runtime.store import Key
from triton_operator.runtime.watches import Watch
from triton_operator.settings import Settings

DIGITS = Key("vision", "digits")


class FailsFirst(Watch):
    """A watch whose first list raises an error; the next ones have one TritonDeployment that is new."""

    def __init__(self, error: Exception) -> None:
        self.kind, self.namespace = JOB, None
        self.errors = [error]

    def start(self) -> None:
        """Nothing: these lists are all that happens."""

    def list(self) -> set[Key]:
        if self.errors:
            raise self.errors.pop()
        return {DIGITS}


class Lists(FailsFirst):
    """A watch of a kind that can be listed, or raises the same error each time."""

    def __init__(self, kind: ApiKind, error: ClusterError | None = None) -> None:
        self.kind, self.namespace = kind, None
        self.error = error

    def list(self) -> set[Key]:
        if self.error is not None:
            raise self.error
        return {DIGITS} if self.kind is JOB else set()


class Held(Lease):
    """A Lease that this replica holds."""

    def __init__(self) -> None:
        pass

    def held(self) -> bool:
        return True


async def no_pass(_: Key) -> Result:
    return Result()


def listed_with(error: Exception) -> tuple[Controller, Callable[[], float]]:
    """A controller whose first full list fails, and the number of bugs that its metrics tell."""
    metrics = Metrics()
    controller = Controller(Settings("converter:test", "server:test", "converter-tensorflow:test"), metrics)
    controller._watches = [FailsFirst(error)]

    def bugs() -> float:
        return metrics.registry.get_sample_value("triton_operator_reconcile_errors_total", {"reason": "Bug"}) or 0.0

    return controller, bugs


ERRORS = pytest.mark.parametrize(
    ("error", "bugs", "said"),
    [
        (UnavailableError("no answer"), 0, "the full lists failed; trying again in {} s: no answer"),
        (KeyError("uid"), 1, "the full lists failed because of a bug; trying again in {} s\nTraceback"),
    ],
    ids=["an outage", "a bug"],
)


@ERRORS
def test_the_next_full_list_finds_what_the_failed_one_did_not(
    error: Exception, bugs: int, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(controller_module, "FULL_LIST_SECONDS", 0.01)
    controller, counted = listed_with(error)

    async def run() -> None:
        queue = WorkQueue(no_pass, 1)
        task = asyncio.create_task(controller._list_forever(queue))
        while not len(queue):
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(run(), 10))
    assert counted() == bugs
    assert said.format(0.01) in caplog.text


@ERRORS
def test_a_standby_takes_over_once_a_full_list_succeeds(
    error: Exception, bugs: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    controller, counted = listed_with(error)
    controller._leads = False

    async def run() -> list[bool]:
        leads = []
        for _ in range(2):
            await controller._take_over(Held(), WorkQueue(no_pass, 1))
            leads.append(controller._leads)
        return leads

    assert asyncio.run(run()) == [False, True]
    assert counted() == bugs
    assert said.format(3) in caplog.text


@pytest.mark.parametrize("kind", [EVENT, SCALED_OBJECT, HTTP_ROUTE], ids=str)
@pytest.mark.parametrize(
    "error", [ServerError("etcdserver: request timed out"), ForbiddenError(""), UnavailableError("")]
)
def test_a_kind_that_only_explains_or_is_optional_keeps_nobody_from_leading(kind: ApiKind, error: ClusterError) -> None:
    controller, _ = listed_with(error)
    controller._watches = [Lists(kind, error), Lists(JOB)]
    controller._leads = False
    queue = WorkQueue(no_pass, 1)

    async def run() -> set[Key]:
        await controller._take_over(Held(), queue)
        return await controller._list_everything()

    assert (asyncio.run(run()), controller._leads, controller.unlisted()) == ({DIGITS}, True, "")


def test_a_kind_by_which_passes_decide_is_waited_for() -> None:
    controller, _ = listed_with(KeyError())
    controller._watches = [Lists(CONFIG_MAP, ServerError("")), Lists(JOB)]
    controller._leads = False
    asyncio.run(controller._take_over(Held(), WorkQueue(no_pass, 1)))
    assert not controller._leads
