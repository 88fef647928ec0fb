"""Many objects: a pass over a settled one asks nothing of the API server and costs the same however many others are."""

import gc
import sys
from typing import Any

from tests.simulation.settled import filled, settled
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.queue import Result
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store


class NoAnswer:
    """In the API server's place: a request fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the API server")


def calls_of_a_pass(others: int) -> int:
    """Python functions that are called in one pass with so many other objects in the store."""
    cluster, bodies = settled()
    store = Store()
    filled(store, bodies, others + 1)
    reconciler = Reconciler(NoAnswer(), store, cluster.settings, Metrics(), lambda: cluster.now)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    key = Key("n0", "digits")
    assert reconciler.reconcile(key) == Result(), "it is settled: no write, and no pass before it is woken"
    # What is collected may call functions of its own.
    gc.disable()
    sys.setprofile(count)
    try:
        assert reconciler.reconcile(key) == Result()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def test_a_pass_over_a_settled_object_costs_the_same_however_many_others_there_are() -> None:
    assert calls_of_a_pass(others=30) == calls_of_a_pass(others=3)


def test_what_the_store_keeps_of_an_object_is_a_fifth_of_its_text() -> None:
    _, bodies = settled()
    store = Store()
    filled(store, bodies, 3)
    kept = sum(len(known.packed) for family in store._families.values() for known in family.members.values())
    assert kept < 3 * len(str(bodies)) / 5
