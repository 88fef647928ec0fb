"""The controller without kopf: what its watches and full lists find, and when it says that it is not alive."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL
from tests.apiserver.kubectl import Kubectl
from triton_operator.runtime import controller as controller_module
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key
from triton_operator.runtime.watches import Watch
from triton_operator.settings import Settings

Story = Callable[[Controller], Coroutine[Any, Any, None]]


@pytest.fixture
def run(apiserver: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], None]:
    """Runs a story with a started controller."""
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))

    async def with_controller(story: Story) -> None:
        controller = Controller(Settings("converter:test", "server:test", "converter-tensorflow:test"), Metrics())
        assert controller.not_ready()
        assert controller.not_alive() == ""
        await controller.start()
        assert controller.not_ready() == ""
        try:
            await story(controller)
        finally:
            await controller.stop()

    return lambda story: asyncio.run(asyncio.wait_for(with_controller(story), 60))


async def until(look: Callable[[], object]) -> None:
    while not await asyncio.to_thread(look):
        await asyncio.sleep(0.1)


async def job_comes_back(controller: Controller, kubectl: Kubectl) -> None:
    await until(lambda: kubectl.items("jobs"))
    uid = kubectl.items("jobs")[0]["metadata"]["uid"]
    await asyncio.to_thread(kubectl, "delete", "jobs", "--all")
    await until(lambda: kubectl.items("jobs"))
    assert kubectl.items("jobs")[0]["metadata"]["uid"] != uid
    assert await asyncio.to_thread(controller.not_alive) == ""


def test_watches_see_the_children(run: Callable[[Story], None], kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=MINIMAL)
    run(lambda controller: job_comes_back(controller, kubectl))


def test_full_lists_find_what_no_watch_said(
    run: Callable[[Story], None], kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "FULL_LIST_SECONDS", 0.5)
    monkeypatch.setattr(Watch, "start", lambda watch: None)

    async def story(controller: Controller) -> None:
        await asyncio.to_thread(kubectl, "create", "-f", "-", body=MINIMAL)
        await job_comes_back(controller, kubectl)

    run(story)


def test_a_pass_that_hangs_is_not_alive(
    run: Callable[[Story], None], kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "LONGEST_PASS_SECONDS", 0.3)

    def hang(reconciler: Reconciler, key: Key) -> Result:
        time.sleep(2)
        return Result()

    monkeypatch.setattr(Reconciler, "reconcile", hang)
    kubectl("create", "-f", "-", body=MINIMAL)

    async def story(controller: Controller) -> None:
        await asyncio.sleep(0.1)
        assert await asyncio.to_thread(controller.not_alive) == ""
        await asyncio.sleep(0.5)
        assert (await asyncio.to_thread(controller.not_alive)).startswith("a pass has run for")

    run(story)


def test_a_queue_that_ended_is_not_alive(run: Callable[[Story], None]) -> None:
    async def story(controller: Controller) -> None:
        controller._tasks[0].cancel()
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(controller.not_alive) == "the work queue ended"

    run(story)


def test_a_watch_that_ended_is_not_alive(run: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "_run", lambda watch: None)

    async def story(controller: Controller) -> None:
        assert (await asyncio.to_thread(controller.not_alive)).startswith("the watch of tritondeployments, jobs, ")

    run(story)


def test_an_event_loop_that_blocks_is_not_alive(run: Callable[[Story], None]) -> None:
    async def story(controller: Controller) -> None:
        answer = asyncio.get_running_loop().run_in_executor(None, controller.not_alive)
        time.sleep(5.5)
        assert await answer == "the event loop does not answer within 5 s"

    run(story)
