"""One object through several good specs; the prober asks it all the while, over every change of revision."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "evolving"


def _two(format_: str, *others: tuple[str, str]) -> list[Mapping[str, str]]:
    pairs = ((format_, "fp32"), *others)
    return [{"name": f"{kind}-{precision}", "format": kind, "precision": precision} for kind, precision in pairs]


STEPS: Mapping[str, Mapping[str, Any]] = {
    "a": {},
    "b": {"model": {"arguments": {"kilobytes_printed": "100"}}},
    "a-again": {},
    "overflow": {"model": {"entrypoint": "overflowing.py", "candidates": _two("ts-trace", ("ts-trace", "fp16"))}},
    "branch": {
        "model": {
            "entrypoint": "branching.py",
            "config": {"maxBatchSize": 1},
            "candidates": _two("ts-trace", ("ts-script", "fp32")),
        }
    },
}
"""In this order; get_model of b prints 100 KB and works."""


@dataclass(frozen=True)
class Step:
    """The object once it was Ready with that spec."""

    state: State
    new_jobs: tuple[Object, ...]
    seconds: float


@dataclass(frozen=True)
class Evolution:
    """All steps, and when the first was Ready and the last had settled."""

    applied: Applied
    steps: Mapping[str, Step]
    since: float
    until: float


def run(suite: Suite) -> Evolution:
    """Apply each spec and wait until it serves."""
    applied = suite.new(NAME)
    steps: dict[str, Step] = {}
    known: set[str] = set()
    since = 0.0
    for name, changes in STEPS.items():
        began = time.time()
        state = applied.wait_ready(applied.apply(changes)).state
        jobs = applied.jobs()
        steps[name] = Step(state, tuple(jobs[uid] for uid in jobs.keys() - known), time.time() - began)
        known |= jobs.keys()
        since = since or time.time()
    return Evolution(applied, steps, since, time.time())
