"""What the results ConfigMap keeps: what is written is what is read again, and what is let go is the oldest."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.states.moments import SERVING
from triton_converters.contract.reasons import Reason
from triton_operator.api.triton_deployment import parse
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.entries import Entries, read_entries
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.history import History
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.snapshot import observe
from triton_operator.planning import retention
from triton_operator.planning.pins import pinned_images
from triton_operator.planning.retention import KEPT_DAMAGES, KEPT_PROMOTIONS, retained
from triton_operator.resources.results import results_config_map

NOTHING = Effects()
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


def at(second: int) -> str:
    return f"2026-11-21T09:00:{second:02}Z"


@pytest.fixture
def context() -> Context:
    """What a pass over a settled object sees, which uses a claim of the user's."""
    cluster = SERVING.cluster()
    deployment, observed = parse(cluster.body()), observe("digits", cluster.objects.values())
    observed = replace(observed, claim={"metadata": {"uid": "uid-claim"}})
    pins = pinned_images(deployment, observed.history, cluster.settings)
    return Context(deployment, observed, cluster.settings, NOW, pins)


def kept(context: Context, effects: Effects = NOTHING, history: History | None = None) -> Entries:
    return retained(context, effects, history or context.observed.history)


def with_observed(context: Context, **changes: Any) -> Context:
    """The context with other fields of the snapshot."""
    return replace(context, observed=replace(context.observed, **changes))


def damage(second: int) -> Damage:
    return Damage(Reason.CRASHED, "no", at(second))


def failure(uid: str) -> Failure:
    return Failure(uid, Reason.CRASHED, "no")


def test_what_is_written_is_read_again(context: Context) -> None:
    name = min(context.observed.records)
    unreadable = {"stage-of-a-newer-version.k": "{}"}
    failures, damaged = {name: failure("uid-1")}, {"k": damage(1)}
    found = kept(with_observed(context, unreadable=unreadable, failures=failures, damaged=damaged))
    assert found.records.keys() == context.observed.records.keys()
    assert (found.failures, found.damaged, found.unreadable) == (failures, damaged, unreadable)
    assert found.active_record == context.observed.active_record is not None
    assert found.recorded_claim == f"{context.claim_name}/uid-claim"
    data = results_config_map(context, found)["data"]
    assert read_entries(data) == found


def test_the_newest_damages_are_remembered_each_as_it_was_found_first(context: Context) -> None:
    known = {f"k{second}": damage(second) for second in range(KEPT_DAMAGES + 2)}
    found = kept(with_observed(context, damaged=known), Effects(damaged={"k5": damage(59), "new": damage(50)})).damaged
    assert found == {**{key: known[key] for key in list(known)[3:]}, "new": damage(50)}


def test_a_failed_soak_is_remembered_longer_than_its_deployment(context: Context) -> None:
    def promotion(second: int, reason: Reason | None) -> Promotion:
        return Promotion("r", "s", "u", "p", at(second), at(second), reason=reason)

    there = next(iter(context.observed.servers))
    failed = {f"failed-{second:02}": promotion(second, Reason.SOAK_FAILED) for second in range(KEPT_PROMOTIONS + 1)}
    passed = {"gone": promotion(50, Reason.SOAK_PASSED), there: promotion(0, Reason.SOAK_PASSED)}
    found = kept(with_observed(context, promotions={**failed, **passed})).promotions
    assert found.keys() == {there, *list(failed)[1:]}


def test_a_failure_stays_while_the_plan_or_its_record_does(context: Context) -> None:
    first, second = sorted(context.observed.records)[:2]
    known = {first: failure("a"), second: failure("b"), "job-that-is-gone": failure("c")}
    found = kept(
        with_observed(context, failures=known),
        Effects(needed=frozenset({first}), failures={"job": failure("d")}),
    )
    assert found.failures == {second: failure("b"), "job": failure("d")}, "the plan judged the first one anew"


def test_what_the_plan_needs_stays_without_any_room(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "ROOM_BYTES", 0)
    convert = f"convert.{context.active_revision}"
    other = next(name for name in context.observed.records if name != convert)
    assert kept(context, Effects(needed=frozenset({other}))).records.keys() == {convert, other}


def test_once_files_leave_the_claim_only_what_names_them_stays(context: Context) -> None:
    history = context.observed.history
    convert = f"convert.{context.active_revision}"
    emptied = History(dropped=history.dropped + 1)
    assert kept(context, history=emptied).records.keys() == {convert}
    assert kept(context, history=replace(emptied, dropped=history.dropped)).records == context.observed.records


def test_results_belong_to_the_claim_that_had_them_while_that_is_missing(context: Context) -> None:
    found = kept(context).recorded_claim
    gone = with_observed(context, claim=None, recorded_claim=found)
    assert kept(gone).recorded_claim == found
    assert kept(with_observed(gone, recorded_claim="another/uid")).recorded_claim == ""
