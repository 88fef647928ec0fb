"""Some steps of the random walk, and that it finds a fault and tells it briefly; `make test-walk` takes a million."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.simulation.deployments import a_spec
from tests.simulation.walk import world
from tests.simulation.walk.__main__ import table
from tests.simulation.walk.edits import EDITS, SERVING, edited
from tests.simulation.walk.happenings import ROWS, draw
from tests.simulation.walk.shortest import shortest
from tests.simulation.walk.walking import Failed, Step, drawn, replay, why
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.planning import following
from triton_operator.planning.plan import Deletion, Plan, plan
from triton_operator.stages.follow_decision import Answer, FollowFacts, answer

WALKS = 4
"""Of each seed, of 40 steps each."""


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_something_answers_and_it_ends(seed: int) -> None:
    walks = drawn(seed)
    for _ in range(WALKS):
        gpus, steps = next(walks)
        replay(gpus, steps)


REPLAYS: dict[str, list[Step]] = {
    "a Job whose result was recorded ran again": [
        ("time passes", 20),
        ("an edit", "performance: http"),
        ("time passes", 20),
        ("pods are gone", None),
        ("time passes", 60),
    ],
    "a Service that is not there was told of": [
        ("time passes", 300),
        ("a webhook is down", ["Service"]),
        ("deleted by hand", "Service"),
        ("time passes", 60),
    ],
}
"""The steps to faults that were found and mended, by what was wrong."""


@pytest.mark.parametrize("fault", REPLAYS)
def test_a_fault_that_was_found_stays_mended(fault: str) -> None:
    replay(None, REPLAYS[fault])


def test_every_row_is_drawn() -> None:
    chance = Random(1)
    assert {draw(chance)[0] for _ in range(3000)} == set(ROWS)


@pytest.mark.parametrize("name", sorted(set(EDITS) - {"invalid"}))
def test_an_edit_is_one_that_the_api_server_takes(name: str) -> None:
    assert TritonDeploymentSpec.model_validate(edited(a_spec(), EDITS[name]))


@pytest.mark.parametrize("name", sorted(SERVING))
def test_an_edit_of_serving_is_one_that_the_api_server_takes(name: str) -> None:
    assert TritonDeploymentSpec.model_validate(a_spec(serving=edited({}, SERVING[name])))


def test_a_fault_is_told_by_the_fewest_steps_that_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that deletes what serves while the object is suspended."""

    def faulty(deployment: Any, observed: Any, *others: Any) -> Plan:
        found: Plan = plan(deployment, observed, *others)
        if not deployment.spec.suspend or not observed.routed_server:
            return found
        kept = [each for each in found.objects if each["kind"] != "Deployment"]
        gone = (*found.deletions, Deletion("apps/v1", "Deployment", observed.routed_server))
        return replace(found, objects=tuple(kept), deletions=gone)

    monkeypatch.setattr(world, "plan", faulty)
    steps = [("scaled", 2), ("time passes", 300), ("a retry", None), ("an edit", "suspended")]
    kept, said = shortest(steps, lambda fewer: why(None, fewer))
    assert kept == (("time passes", 300), ("an edit", "suspended"))
    assert "is deleted while it is active" in said
    assert """--replay '[null, [["time passes", 300], ["an edit", "suspended"]]]'""" in table(Failed(None, kept, said))


def test_a_version_that_one_look_found_in_a_bucket_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an operator that takes it at once."""

    def hasty(facts: FollowFacts) -> Answer:
        found = answer(facts)
        return Answer.TAKE if found is Answer.LOOK_AGAIN else found

    monkeypatch.setattr(following, "answer", hasty)
    steps = [
        ("an edit", "source: followed in a bucket"),
        ("time passes", 300),
        ("the source's server says", ["good-1"]),
        ("an hour passes", 3600),
    ]
    assert why(None, steps) == "good-1 is taken, and 1 looks found it"
