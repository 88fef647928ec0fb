"""One object that asks for a soak: a revision that is kept, a slow one that is undone, and a rollback to the first.

The prober asks it all the while, over every change of revision.
"""

import time
from dataclasses import dataclass

from tests.e2e import plugin
from tests.e2e.applied import Applied
from tests.e2e.kubectl import Object
from tests.e2e.last_words import eventually
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
    rolled_back: State
    """Once `kubectl triton rollback` to the first revision serves."""
    servers_in_the_end: tuple[Object, ...]
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
    tried_again, servers = applied.state, tuple(applied.children("deployments"))
    service = suite.busy.get("service", NAME)
    plugin.run(suite.busy, "rollback", NAME, first.revision)
    rolled_back = applied.wait("the first revision", lambda state: goes_back(state, first), generation=generation + 1)
    return Soaked(
        applied=applied,
        first=first,
        kept=kept,
        undone=undone,
        tried_again=tried_again,
        servers=servers,
        service=service,
        rolled_back=rolled_back.state,
        servers_in_the_end=only_one(applied),
        since=since,
        until=time.time(),
    )


def goes_back(state: State, first: State) -> bool:
    """Whether the first revision serves again."""
    return state.holds("Ready") and state.revision == first.revision


def only_one(applied: Applied) -> tuple[Object, ...]:
    """The Deployments once what made way for another one is gone."""
    eventually("one Deployment alone", lambda: {} if len(applied.children("deployments")) == 1 else None)
    return tuple(applied.children("deployments"))
