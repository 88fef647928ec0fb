"""One object that asks for a soak: its first revision, one that is kept, and a slow one that is undone.

The prober asks it all the while, over every change of revision.
"""

import time
from dataclasses import dataclass

from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "soaked"
SOAK = {"serving": {"soak": {"duration": "1m", "minRequests": 100, "maxLatencyPercent": 300}}}
"""The prober sends some ten requests a second. Other objects' Jobs on the same cores make servers slower too."""
SECONDS_AFTER = 30.0
"""In which another try would be seen."""
OTHER = {"model": {"arguments": {"kilobytes_printed": "10"}}}
SLOW = {"model": {"entrypoint": "slow.py"}}


@dataclass(frozen=True)
class Soaked:
    """The object after each of its revisions, and what there was of it in the end."""

    applied: Applied
    first: State
    kept: State
    undone: State
    tried_again: State
    """The same, after some more time."""
    servers: tuple[Object, ...]
    """The Deployments after the undo."""
    service: Object
    since: float
    until: float


def run(suite: Suite) -> Soaked:
    """Apply three specs, and wait for the verdict of each."""
    applied = suite.new(NAME)
    first = applied.wait_ready(applied.apply(SOAK)).state
    since = time.time()
    kept = applied.wait(
        "a soak that passed",
        lambda state: state.condition("Soaked").get("reason") == "SoakPassed",
        generation=applied.apply({**SOAK, **OTHER}),
    ).state
    generation = applied.apply({**SOAK, **SLOW})
    undone = applied.wait("an undo", lambda state: state.says("Ready", "SoakFailed"), generation=generation).state
    time.sleep(SECONDS_AFTER)
    return Soaked(
        applied=applied,
        first=first,
        kept=kept,
        undone=undone,
        tried_again=applied.state,
        servers=tuple(applied.children("deployments")),
        service=suite.busy.get("service", NAME),
        since=since,
        until=time.time(),
    )
