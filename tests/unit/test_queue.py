"""The work queue: one worker a key, coalescing, waiting, backoff, order."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triton_operator.runtime.queue import LONGEST_BACKOFF_SECONDS, Result, Schedule, WorkQueue


def test_keys_come_out_in_the_order_they_were_woken() -> None:
    schedule: Schedule[str] = Schedule()
    for key in ("b", "a", "c", "a", "b"):
        schedule.wake(key, 0.0)
    assert [schedule.take(0.0) for _ in range(4)] == ["b", "a", "c", None]


def test_a_key_woken_while_worked_on_comes_again_once_and_last() -> None:
    schedule: Schedule[str] = Schedule()
    schedule.wake("a", 0.0)
    assert schedule.take(0.0) == "a"
    schedule.wake("b", 0.0)
    schedule.wake("a", 0.0)
    schedule.wake("a", 0.0)
    assert schedule.take(0.0) == "b"
    assert schedule.take(0.0) is None
    schedule.succeeded("a", 0.0, again_after=100.0)
    assert schedule.take(0.0) == "a"
    schedule.succeeded("a", 0.0, again_after=None)
    assert schedule.take(1000.0) is None


def test_a_key_is_due_again_after_its_pause_and_a_wake_replaces_the_pause() -> None:
    schedule: Schedule[str] = Schedule()
    schedule.wake("a", 0.0)
    schedule.take(0.0)
    schedule.succeeded("a", 0.0, again_after=5.0)
    assert schedule.next_time() == 5.0
    assert schedule.take(4.9) is None
    schedule.wake("a", 0.0)
    assert schedule.next_time() is None
    assert schedule.take(4.9) == "a"
    schedule.succeeded("a", 4.9, again_after=None)
    assert schedule.take(5.0) is None


def test_how_long_a_key_waits_counts_from_when_it_became_due() -> None:
    schedule: Schedule[str] = Schedule()
    assert schedule.oldest_due() is None
    schedule.wake("a", 1.0)
    schedule.wake("b", 2.0)
    schedule.wake("a", 3.0)
    assert schedule.oldest_due() == 1.0, "another wake does not begin anew"
    assert schedule.take(4.0) == "a"
    assert schedule.oldest_due() == 2.0
    assert schedule.take(4.0) == "b"
    schedule.succeeded("a", 5.0, again_after=0.0)
    schedule.succeeded("b", 6.0, again_after=4.0)
    assert schedule.oldest_due() == 5.0, "one that has to finish waits too, and one that pauses does not"
    assert [schedule.take(20.0), schedule.take(20.0)] == ["b", "a"]
    schedule.wake("b", 21.0)
    assert schedule.oldest_due() is None, "it is worked on"
    schedule.succeeded("b", 22.0, again_after=None)
    assert schedule.oldest_due() == 22.0


def test_what_only_has_to_be_finished_comes_after_all_that_was_woken() -> None:
    schedule: Schedule[str] = Schedule()
    for key in ("a", "b", "c"):
        schedule.wake(key, 0.0)
    for key in ("a", "b"):
        assert schedule.take(0.0) == key
        schedule.succeeded(key, 0.0, again_after=0.0)
    assert len(schedule) == 3
    schedule.wake("b", 0.0)
    assert [schedule.take(0.0) for _ in range(4)] == ["c", "b", "a", None]
    schedule.wake("a", 0.0)
    schedule.succeeded("a", 0.0, again_after=0.0)
    schedule.wake("d", 0.0)
    assert [schedule.take(0.0) for _ in range(3)] == ["a", "d", None]


def test_pauses_double_up_to_the_cap_and_success_resets_them() -> None:
    schedule: Schedule[str] = Schedule()
    pauses, now = [], 0.0
    schedule.wake("a", 0.0)
    for _ in range(1200):
        assert schedule.take(now) == "a"
        pauses.append(schedule.failed("a", now))
        now += pauses[-1]
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS
    assert schedule.take(now) == "a"
    schedule.succeeded("a", now, again_after=None)
    schedule.wake("a", 0.0)
    schedule.take(now)
    assert schedule.failed("a", now) == 0.5


class ScheduleMachine(RuleBasedStateMachine):
    """A schedule against a model that keeps for each key when it must be worked on again."""

    keys = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.schedule: Schedule[str] = Schedule()
        self.now = 0.0
        self.wanted: dict[str, float] = {}
        self.working: set[str] = set()

    @rule(key=keys)
    def wake(self, key: str) -> None:
        self.schedule.wake(key, self.now)
        self.wanted[key] = self.now

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        key = self.schedule.take(self.now)
        due = {k for k, at in self.wanted.items() if at <= self.now and k not in self.working}
        if key is None:
            assert not due, f"{due} are due and nothing was taken"
        else:
            assert key in due, f"{key} is not due, or already worked on"
            del self.wanted[key]
            self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), pause=st.none() | st.floats(0, 10))
    def succeed(self, data: st.DataObject, pause: float | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.schedule.succeeded(key, self.now, pause)
        self.working.remove(key)
        if key not in self.wanted and pause is not None:
            self.wanted[key] = self.now + pause

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        pause = self.schedule.failed(key, self.now)
        assert 0 < pause <= LONGEST_BACKOFF_SECONDS
        self.working.remove(key)
        self.wanted.setdefault(key, self.now + pause)

    @invariant()
    def nothing_that_is_wanted_is_forgotten(self) -> None:
        waiting = {key: at for key, at in self.wanted.items() if key not in self.working}
        if waiting and len(self.schedule) == 0:
            assert self.schedule.next_time() == min(waiting.values())


TestSchedule = ScheduleMachine.TestCase
TestSchedule.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 20))


async def drive(
    process: Callable[[str], Awaitable[Result]], workers: int, until: Callable[[], bool], keys: str
) -> None:
    """Run a queue woken for each key until the condition holds."""
    queue: WorkQueue[str] = WorkQueue(process, workers)
    for key in keys:
        queue.wake(key)
    task = asyncio.create_task(queue.run())
    while not until():
        assert not task.done(), "the queue ended by itself"
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_queue_works_on_at_most_so_many_keys_at_a_time() -> None:
    running, most, ended = 0, 0, []

    async def process(key: str) -> Result:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        ended.append(key)
        return Result()

    run(drive(process, 3, lambda: len(ended) == 9, "abcdefghi"))
    assert most == 3
    assert sorted(ended) == list("abcdefghi")


def test_a_failing_key_is_tried_again_and_does_not_hold_up_the_others() -> None:
    seen: list[str] = []

    async def process(key: str) -> Result:
        seen.append(key)
        if key == "bad" and seen.count("bad") == 1:
            raise ValueError("no")
        return Result(failed=key == "bad")

    async def story() -> None:
        queue: WorkQueue[str] = WorkQueue(process, 1)
        queue.wake("bad")
        queue.wake("good")
        task = asyncio.create_task(queue.run())
        while seen.count("bad") < 3:
            await asyncio.sleep(0.01)
        task.cancel()

    run(story())
    assert seen == ["bad", "good", "bad", "bad"]


def test_a_key_comes_back_after_the_seconds_its_pass_asked_for() -> None:
    times: list[float] = []

    async def process(key: str) -> Result:
        times.append(asyncio.get_running_loop().time())
        return Result(again_after=0.05 if len(times) < 3 else None)

    run(drive(process, 2, lambda: len(times) == 3, "a"))
    assert all(later - earlier >= 0.05 for earlier, later in itertools.pairwise(times))


def test_a_wake_during_the_pass_leads_to_one_more_pass() -> None:
    passes = 0

    async def story() -> None:
        async def process(key: str) -> Result:
            nonlocal passes
            passes += 1
            if passes == 1:
                for _ in range(5):
                    queue.wake(key)
                await asyncio.sleep(0.01)
                assert queue.oldest_pass_seconds() > 0
            return Result()

        queue: WorkQueue[str] = WorkQueue(process, 4)
        queue.wake("a")
        task = asyncio.create_task(queue.run())
        await asyncio.sleep(0.1)
        task.cancel()

    run(story())
    assert passes == 2


def test_a_far_timer_keeps_nothing_of_the_passes_before_it_is_due() -> None:
    schedule: Schedule[str] = Schedule()
    for key in ("other", "key"):
        schedule.wake(key, 0.0)
        schedule.take(0.0)
    schedule.succeeded("other", 0.0, again_after=9000.0)
    for second in range(1000):
        schedule.succeeded("key", second, again_after=7 * 86400.0)
        schedule.wake("key", second)
        assert schedule.take(second) == "key"
    assert len(schedule._heap) < 10
    schedule.succeeded("key", 1000.0, again_after=5.0)
    assert [schedule.next_time(), schedule.take(1005.0), schedule.next_time()] == [1005.0, "key", 9000.0]
