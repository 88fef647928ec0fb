"""An author whose Python step attacks from inside the server, where it is measured and where it serves."""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.applied import DisappointedError
from tests.e2e.models.attempts import GROUPS
from tests.e2e.reach import METADATA
from tests.e2e.state import State
from tests.e2e.suite import Suite

CAME = re.compile(r"CAME<([^>]*)>")
MEASURED, SERVING = "a Python step that is measured", "a Python step that serves"
Came = Mapping[str, Mapping[str, str]]
"""What came of each attempt: REACHED with what was got, or the error that stopped it; by group and by its name."""


def attack(suite: Suite, places: Mapping[str, str], at_a_time: int) -> dict[str, Came]:
    """Return what came of the attacks, by where they ran.

    One object for each group attacks where it is measured, and another one where it serves.
    """
    targets = json.dumps({**places, "metadata": METADATA})
    with ThreadPoolExecutor(at_a_time) as executor:
        serving = executor.submit(_serving, suite, targets)
        measured = {group: executor.submit(_measured, suite, group, targets) for group in GROUPS}
        return {
            MEASURED: {group: named(group, each.result()) for group, each in measured.items()},
            SERVING: {group: named(group, said) for group, said in serving.result().items()},
        }


def attacking(group: str, targets: str) -> dict[str, Any]:
    """The change by which a step attacks where it is measured."""
    return {"model": {"arguments": {"attack": group, "targets": targets}}}


def served(targets: str) -> dict[str, Any]:
    """The change by which a step attacks once a client asks it to."""
    return {"model": {"arguments": {"targets": targets}}}


def every_change(targets: str) -> Iterator[dict[str, Any]]:
    """Yield the change of each object whose step attacks."""
    yield from (attacking(each, targets) for each in GROUPS)
    yield served(targets)


def _measured(suite: Suite, group: str, targets: str) -> str:
    """The failure of an object whose step attacks in its profile Job, next to the client that measures."""
    applied = suite.new(f"step-{group}", "step")
    generation = applied.apply(attacking(group, targets))

    def over(state: State) -> bool:
        return state.holds("Stalled") or state.holds("Ready")

    return applied.wait(f"the end of the step's attack: {group}", over, generation=generation).state.summary()


def _serving(suite: Suite, targets: str) -> dict[str, str]:
    """What the step of a Ready object answers to a client that asks it to attack, by group."""
    applied = suite.new("step-served", "step")
    applied.wait_ready(applied.apply(served(targets)))
    url = f"step-served.{suite.busy.namespace}:8001"
    words = [f"attack {group}" for group in GROUPS]
    answers = json.loads(suite.workbench.python("say.py", url, "said", *words, timeout=300))
    if (said := json.loads(suite.workbench.python("say.py", url, "said", "word"))) != ["WORD"]:
        raise DisappointedError(f"after its attacks the step answers {said}")
    return dict(zip(GROUPS, answers, strict=True))


def named(group: str, words: str) -> dict[str, str]:
    """What came of each attempt; raises DisappointedError if the words do not say it whole."""
    # A condition cuts in the middle what the candidate's own message has whole.
    for outcomes in (found.split("|") for found in CAME.findall(words)):
        if len(outcomes) == len(GROUPS[group]):
            return dict(zip(GROUPS[group], outcomes, strict=True))
    raise DisappointedError(f"the attack {group!r} does not say what came of it:\n{words}")
